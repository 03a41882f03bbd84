// A partition gained again: what its last owner parked waits until all before it has been read from the log.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Source } from '../../src/log/log.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { type Row, useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

/** Nothing is taken from the log before the gate opens. */
const gated = (source: Source, gate: Promise<void>): Source => ({
  ...source,
  join: (group, gained) =>
    source.join(group, async (lease) => {
      const reader = await gained(lease)
      const handle: typeof reader.handle = async (batch) => {
        await gate
        return reader.handle(batch)
      }
      return { ...reader, handle }
    }),
})

const leaseMs = 30_000
const destinations = (url: string, other: string) => [
  aDestination({ id: 1, name: 'Slow', webhooks: to(url) }),
  aDestination({ id: 2, name: 'Quick', webhooks: to(other) }),
]

/**
 * The life before was killed while `e1` was under way and `e2` waited behind it, in a lane so full that `e3`
 * was parked.
 */
const scene = async (limits: { readonly claimPerLaneMax: number }) => {
  const [slow, quick] = [await receiver(), await receiver()]
  const live = aLive({ destinations: destinations(slow.url, quick.url) })
  const rig = open(live, {
    partitions: 1,
    limits: { laneMax: 2, roundsPerLaneMax: 1, positionEveryMs: 20, claimEveryMs: 20, ...limits },
  })
  const answer = Promise.withResolvers<number>()
  slow.reply(({ json }) => (json['event'] === 'before' ? 503 : answer.promise))
  const life = rig.start({}, 60_000)
  await rig.append([rig.aCall({ event: 'before', userId: 'u2' })])
  await drained(rig)
  await rig.append(['e1', 'e2'].map((event) => rig.aCall({ event })))
  await rig.append([rig.aCall({ event: 'other', userId: 'u3' })])
  await rig.append([rig.aCall({ event: 'e3' })])
  const parked = async () => (await rowsOf('parked')).map(({ reason }) => reason)
  await until(async () => (await parked()).length === 2, 'one more is parked')
  expect(await parked()).toEqual(['temporary', 'lane_full'])
  life.crash()
  answer.resolve(200)
  slow.requests.splice(0)
  slow.reply(() => 200)
  rig.setNow(rig.now() + 2 * leaseMs)
  const gate = Promise.withResolvers<void>()
  rig.start({}, 5_000, { source: gated(rig.log.source(), gate.promise) })
  // It is due as well, and its offset is below the position.
  await until(() => slow.requests.length > 0, 'what was parked before is tried again')
  const isLeased = (row: Row) => row.lease_owner !== null && Number(row.next_at) > rig.now()
  const isSettled = async () => !(await rowsOf('parked')).some(isLeased)
  await until(isSettled, 'what was claimed is settled')
  return { slow, quick, rig, parked, go: gate.resolve }
}

test('is not read on before what its last owner here had to save is off its hands', async () => {
  const hook = await receiver()
  let saving = (): void => undefined
  const gate = Promise.withResolvers<void>()
  const { pool } = database
  const held: typeof pool = {
    ...pool,
    query: async (text, values) => {
      if (isHeld && text.includes('insert into duplicate_chunk')) {
        saving()
        await gate.promise
      }
      return pool.query(text, values)
    },
  }
  let isHeld = false
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 1,
    pool: held,
  })
  await rig.append([rig.aCall({ event: 'e1' })])
  const source = rig.log.source()
  type Gained = Parameters<Source['join']>[1]
  const gained = Promise.withResolvers<Gained>()
  const joined: Source['join'] = (group, own) => {
    if (!group.topics.includes('calls')) return source.join(group, own)
    gained.resolve(own)
    const done = Promise.withResolvers<void>()
    return { stop: async () => done.resolve(), done: done.promise }
  }
  rig.start({}, 5_000, { source: { ...source, join: joined } })
  const gain = await gained.promise
  const lose = new AbortController()
  const lease = { topic: 'calls', partition: 0, committed: null, commit: async () => 'committed' }
  const first = await gain({ ...lease, lost: lose.signal } as Parameters<Gained>[0])
  const isSaving = new Promise<void>((resolve) => {
    saving = resolve
  })
  isHeld = true
  const batches = source.read({ topic: 'calls', partition: 0, from: 0n, until: 1n })
  const { value: batch } = await batches[Symbol.asyncIterator]().next()
  const handling = first.handle(batch)
  await isSaving
  lose.abort()
  const { signal } = new AbortController()
  const again = gain({ ...lease, lost: signal } as Parameters<Gained>[0])
  const soon = await Promise.race([again.then(() => 'gained'), sleep(1_000, 'waiting')])
  gate.resolve()
  expect(soon).toBe('waiting')
  expect((await again).from).toBe(0n)
  await handling
})

/** As each came first. */
const eventsOf = ({ requests }: Awaited<ReturnType<typeof receiver>>) => [
  ...new Set(requests.map(({ json }) => json['event'])),
]

test('what overflowed is not sent before what stood before it in the log', async () => {
  const { slow, rig, parked, go } = await scene({ claimPerLaneMax: 100 })
  expect(eventsOf(slow)).toEqual(['before'])
  go()
  await until(async () => (await parked()).length === 0, 'nothing is parked')
  await drained(rig)
  expect(eventsOf(slow).filter((event) => event !== 'other')).toEqual(['before', 'e1', 'e2', 'e3'])
})

test('what overflowed and was due waits again behind what is read before it', async () => {
  const { slow, rig, parked, go } = await scene({ claimPerLaneMax: 1 })
  go()
  await until(async () => (await parked()).length === 0, 'nothing is parked')
  await drained(rig)
  expect(eventsOf(slow).filter((event) => event !== 'other')).toEqual(['before', 'e1', 'e2', 'e3'])
})
