// A partition gained again: what its last owner parked waits until all before it has been read from the log.
import { expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
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

type Gained = Parameters<Source['join']>[1]

/** Of its calls nobody gains a partition by itself: the test does, by what the stage would have done. */
const gainedByHand = (source: Source) => {
  const gained = Promise.withResolvers<Gained>()
  const join: Source['join'] = (group, own) => {
    if (!group.topics.includes('calls')) return source.join(group, own)
    gained.resolve(own)
    const done = Promise.withResolvers<void>()
    return { stop: async () => done.resolve(), done: done.promise }
  }
  return { source: { ...source, join }, gained: gained.promise }
}

/** Calls are gained when the test says so; of the first partition a save is held back until the gate opens. */
const sceneOfSaving = async () => {
  const hook = await receiver()
  let saving = (): void => undefined
  const gate = Promise.withResolvers<void>()
  const { pool } = database
  const held: typeof pool = {
    ...pool,
    query: async (text, values) => {
      if (text.includes('insert into duplicate_chunk')) {
        saving()
        await gate.promise
      }
      return pool.query(text, values)
    },
  }
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    pool: held,
  })
  const [at] = await rig.append([rig.aCall({ event: 'e1' })])
  const partition = at?.partition ?? 0
  const { source, gained } = gainedByHand(rig.log.source())
  rig.start({}, 5_000, { source })
  const gain = await gained
  const gainAs = (lost: AbortSignal, of = partition) =>
    gain({ topic: 'calls', partition: of, committed: null, lost, commit: async () => 'committed' })
  const lose = new AbortController()
  const first = await gainAs(lose.signal)
  const isSaving = new Promise<void>((resolve) => {
    saving = resolve
  })
  const batches = source.read({ topic: 'calls', partition, from: 0n, until: 1n })
  const { value: batch } = await batches[Symbol.asyncIterator]().next()
  const handling = first.handle(batch)
  await isSaving
  lose.abort()
  /** Long enough for a gain that began before and waits for nothing here. */
  const othersGained = async () => {
    for (let times = 0; times < 20; times += 1)
      await gainAs(new AbortController().signal, 1 - partition)
  }
  const epoch = async () => {
    const { rows } = await database.pool.query<{ epoch: bigint }>(
      "select epoch from position where reader = 'deliver' and topic = 'calls' and partition = $1",
      [partition],
    )
    return Number(rows[0]?.epoch)
  }
  return { gainAs, othersGained, epoch, release: gate.resolve, handling }
}

test('is not read on before what its last owner here had to save is off its hands', async () => {
  const { gainAs, othersGained, release, handling } = await sceneOfSaving()
  let isGained = false
  const again = gainAs(new AbortController().signal).then((reader) => {
    isGained = true
    return reader
  })
  await othersGained()
  const was = isGained
  release()
  expect(was).toBe(false)
  expect((await again).from).toBe(0n)
  await handling
})

test('whoever loses it while waiting for that leaves it to the next, who waits for the same', async () => {
  const { gainAs, othersGained, epoch, release, handling } = await sceneOfSaving()
  const before = await epoch()
  const lose = new AbortController()
  const lost = gainAs(lose.signal).catch((error: unknown) => error)
  let isGained = false
  lose.abort()
  const again = gainAs(new AbortController().signal).then((reader) => {
    isGained = true
    return reader
  })
  await othersGained()
  const was = isGained
  release()
  expect(was).toBe(false)
  expect((await again).from).toBe(0n)
  expect(await lost).toMatchObject({ name: 'AbortError' })
  // A higher one would fence its owner.
  expect(await epoch()).toBe(before + 1)
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

type Reading = {
  /** Called when an epoch was taken, before deliver hears of it. */
  taken: () => void
}

/**
 * Four calls of one partition are sent and no position is ever written; the third's answer comes only after the
 * partition is lost.
 */
const sceneOfLosing = async () => {
  const hook = await receiver()
  const answer = Promise.withResolvers<number>()
  hook.reply(({ json }) => (json['event'] === 'e3' ? answer.promise : 200))
  const reading: Reading = { taken: () => undefined }
  const { pool } = database
  const watched: typeof pool = {
    ...pool,
    query: async (text, values) => {
      const result = await pool.query(text, values)
      if (text.includes('insert into position')) reading.taken()
      return result as never
    },
  }
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 1,
    pool: watched,
    limits: { positionEveryMs: 3_600_000 },
  })
  const send = (...events: readonly string[]) =>
    rig.append(events.map((event) => rig.aCall({ event, userId: event })))
  const { source, gained } = gainedByHand(rig.log.source())
  const life = rig.start({}, 60_000, { source })
  const gain = await gained
  const gainAs = (lost: AbortSignal = new AbortController().signal) =>
    gain({ topic: 'calls', partition: 0, committed: null, lost, commit: async () => 'committed' })
  const readOn = async (reader: Awaited<ReturnType<Gained>>) => {
    const [bounds] = await source.bounds('calls')
    const range = {
      topic: 'calls',
      partition: 0,
      from: reader.from,
      until: bounds?.end ?? 0n,
    } as const
    for await (const batch of source.read(range)) await reader.handle(batch)
  }
  const lose = new AbortController()
  await send('e1', 'e2', 'e3', 'e4')
  await readOn(await gainAs(lose.signal))
  await until(() => hook.requests.length === 4, 'all were sent')
  const answers = async () => (await rowsOf('attempt')).length
  await until(async () => (await answers()) === 3, 'all but one are answered')
  lose.abort()
  answer.resolve(200)
  const sent = () => hook.requests.map(({ json }) => json['event']).sort()
  return { gainAs, readOn, send, sent, life, reading }
}

test('what was delivered is not sent again when a lost partition comes back, though no position says so', async () => {
  const { gainAs, readOn, send, sent, life } = await sceneOfLosing()
  const reader = await gainAs()
  expect(reader.from).toBe(4n)
  await send('e5')
  await readOn(reader)
  await until(() => sent().includes('e5'), 'it goes on')
  await life.running.stop()
  expect(sent()).toEqual(['e1', 'e2', 'e3', 'e4', 'e5'])
  const ledger = sumLedger(await loadLedger(database.pool))
  expect(ledger).toMatchObject({ consumed: 5n, delivered: 5n, inFlight: 0n, gap: 0n })
})

test('also when it was lost once more while it was gained', async () => {
  const { gainAs, sent, reading } = await sceneOfLosing()
  const lose = new AbortController()
  reading.taken = () => lose.abort()
  await gainAs(lose.signal).catch(() => undefined)
  expect(lose.signal.aborted).toBe(true)
  reading.taken = () => undefined
  expect((await gainAs()).from).toBe(4n)
  expect(sent()).toEqual(['e1', 'e2', 'e3', 'e4'])
})

test('where somebody else had it meanwhile only the position counts', async () => {
  const { gainAs, readOn, sent } = await sceneOfLosing()
  await database.pool.query("update position set epoch = epoch + 1 where topic = 'calls'")
  const reader = await gainAs()
  expect(reader.from).toBe(0n)
  await readOn(reader)
  await until(() => sent().length === 8, 'all were sent again')
})
