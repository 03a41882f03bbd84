import { expect, test } from 'vitest'
import { decodeState } from '../../src/deliver/position-state.ts'
import type { Destination } from '../../src/domain/configuration.ts'
import type { Filter } from '../../src/domain/filter.ts'
import type { Counted } from '../../src/domain/pipeline.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { anOutbound, useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

/** One line for each source, destination, type and reason. */
const aPipeline = () => {
  const counts = new Map<string, number>()
  return {
    counts,
    count: (counted: Counted, amount: number) => {
      const { sourceId, destinationId, step, type, reason } = counted
      const key = `${sourceId} ${destinationId} ${step} ${type} ${reason}`
      counts.set(key, (counts.get(key) ?? 0) + amount)
    },
  }
}

/** The outcomes of (message, destination) pairs, as every position has them. */
const ledger = async () => {
  const { rows } = await database.pool.query<{ state: Buffer; next: bigint }>(
    "select state, next from position where reader = 'deliver'",
  )
  const sums = { delivered: 0, parked: 0, dead: 0, filtered: 0, duplicate: 0 }
  for (const { state, next } of rows) {
    const { counters } = decodeState(state, Number(next))
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += Number(counters[key])
  }
  return sums
}

const propertiesAt = (hook: Receiver) =>
  hook.requests.map(({ json }) => JSON.stringify(json['properties']))

const filtered = (id: number, hook: Receiver, filters: readonly Filter[]): Destination =>
  aDestination({ id, name: `D${id}`, webhooks: to(hook.url), filters })

test('each destination gets its own choice of a call, signed, and one without filters all of it', async () => {
  const hooks = [await receiver(), await receiver(), await receiver()] as const
  const [all, without, only] = hooks
  const rig = open(
    aLive({
      destinations: [
        filtered(1, all, []),
        filtered(2, without, [{ kind: 'block', paths: ['properties.mail'] }]),
        filtered(3, only, [
          { kind: 'block', paths: ['properties.price.tax'] },
          { kind: 'allow', paths: ['properties.price'] },
        ]),
      ],
    }),
  )
  rig.start()
  await rig.append([
    rig.aCall({}, { properties: { 'Order Id': 7, mail: 'a@b.c', price: { net: 1, tax: 2 } } }),
  ])
  await drained(rig)
  expect(propertiesAt(all)).toEqual(['{"Order Id":7,"mail":"a@b.c","price":{"net":1,"tax":2}}'])
  expect(propertiesAt(without)).toEqual(['{"Order Id":7,"price":{"net":1,"tax":2}}'])
  expect(propertiesAt(only)).toEqual(['{"price":{"net":1}}'])
  expect(hooks.flatMap(({ badSignatures }) => badSignatures)).toEqual([])
  expect(await ledger()).toMatchObject({ delivered: 3, filtered: 0 })
})

test('every call that a destination does not get is counted, with the first reason there is', async () => {
  const hook = await receiver()
  const pipeline = aPipeline()
  const free = { prop: 'plan', op: 'eq', value: 'free' }
  const rig = open(
    aLive({
      destinations: [
        { ...filtered(1, hook, [{ kind: 'drop', if: { where: free } }]), name: 'CRM' },
        aDestination({ id: 2, name: 'Off', enabled: false, filters: [] }),
        aDestination({ id: 3, name: 'Fresh', webhooks: to(hook.url), historical: false }),
        filtered(4, hook, [{ kind: 'sample', rate: 0, if: { types: ['track'] } }]),
      ],
    }),
    { pipeline },
  )
  rig.start()
  const once = rig.aCall({}, { properties: { plan: 'free' } })
  await rig.append([
    once,
    once,
    rig.aCall({ type: 'page', event: null }, { properties: { plan: 'free' } }),
    rig.aCall({}, { properties: { plan: 'free' }, integrations: { CRM: false } }),
    rig.aCall({ timestamp: 0 }, { integrations: { All: false, Fresh: true, Off: true } }),
  ])
  await drained(rig)
  // A duplicate is no call any more: it is counted neither here nor there.
  expect(Object.fromEntries(pipeline.counts)).toEqual({
    '1 1 filtered track dropped': 1,
    '1 1 filtered page dropped': 1,
    '1 1 filtered track integrations': 2,
    '1 2 filtered track destination_disabled': 3,
    '1 2 filtered page destination_disabled': 1,
    '1 3 filtered track historical': 1,
    '1 4 filtered track sampled': 2,
    '1 4 filtered track integrations': 1,
  })
  expect(hook.requests.length).toBe(4)
  expect(await ledger()).toEqual({ delivered: 4, parked: 0, dead: 0, filtered: 12, duplicate: 1 })
})

test('the same users are taken when the same calls are sent anew, and only they', async () => {
  const [hook, again] = [await receiver(), await receiver()]
  const half: readonly Filter[] = [{ kind: 'sample', rate: 0.5 }]
  const rig = open(aLive({ destinations: [filtered(1, hook, half)] }))
  const life = rig.start()
  const calls = Array.from({ length: 60 }, (_, at) => rig.aCall({ userId: `u${at % 30}` }))
  await rig.append(calls)
  await drained(rig)
  await life.running.stop()
  const usersAt = ({ requests }: Receiver) => requests.map(({ json }) => json['userId'])
  const taken = new Set(usersAt(hook))
  expect(hook.requests.length).toBe(2 * taken.size)
  expect(taken.size).toBeGreaterThan(5)
  expect(taken.size).toBeLessThan(25)
  await database.pool.query('truncate position, duplicate_chunk, duplicate_segment, duplicate_page')
  const anew = open(aLive({ destinations: [filtered(1, again, half)] }))
  anew.start()
  await anew.append(calls)
  await drained(anew)
  expect(usersAt(again).toSorted()).toEqual(usersAt(hook).toSorted())
})

test('messages that syncs make are not filtered', async () => {
  const hook = await receiver()
  const rig = open(
    aLive({
      destinations: [
        filtered(1, hook, [
          { kind: 'sample', rate: 0 },
          { kind: 'drop', if: { types: ['identify'] } },
          { kind: 'allow', paths: ['context'] },
        ]),
      ],
    }),
  )
  rig.start()
  await rig.appendOutbound([anOutbound()])
  await until(() => hook.requests.length === 1, 'it arrives')
  expect(hook.requests[0]?.json['traits']).toEqual({ vip: true })
})

test('filters that cannot be evaluated hold back their own destination only', async () => {
  const [hook, strange] = [await receiver(), await receiver()]
  const unknown: Filter = { kind: 'drop', if: { where: { prop: 'a', op: 'resembles' } } }
  const rig = open(
    aLive({ destinations: [filtered(1, strange, [unknown]), filtered(2, hook, [])] }),
  )
  rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  expect(hook.requests.length).toBe(1)
  expect(strange.requests).toEqual([])
  const dead = await rowsOf('dead')
  expect(dead).toMatchObject([{ reason: 'internal', destination_id: 1 }])
  expect(dead[0]?.body?.length).toBe(0)
})

test('what waited for room in the log is filtered as well when its turn comes', async () => {
  const [slow, quick] = [await receiver(), await receiver()]
  const room = Promise.withResolvers<number>()
  slow.reply(() => room.promise)
  const block: Filter = { kind: 'block', paths: ['properties.mail'] }
  const rig = open(aLive({ destinations: [filtered(1, slow, [block]), filtered(2, quick, [])] }), {
    limits: { laneMax: 4, roundsPerLaneMax: 1, fullMs: 0 },
  })
  rig.start()
  const calls = Array.from({ length: 40 }, (_, n) =>
    rig.aCall({ userId: `u${n}` }, { properties: { n, mail: 'a@b.c' } }),
  )
  await rig.append(calls)
  await until(async () => (await rowsOf('parked')).length > 0, 'the slow one overflows')
  expect(
    (await rowsOf('parked')).some(
      ({ body_id, reason }) => reason === 'lane_full' && body_id === null,
    ),
  ).toBe(true)
  room.resolve(200)
  await until(() => slow.requests.length === calls.length, 'the slow one has them all')
  expect(slow.requests.every(({ json }) => !JSON.stringify(json).includes('a@b.c'))).toBe(true)
  expect(quick.requests.every(({ json }) => JSON.stringify(json).includes('a@b.c'))).toBe(true)
})

test('pairs that are withheld count once, though their call is read again', async () => {
  const hook = await receiver()
  const held = Promise.withResolvers<number>()
  hook.reply((_request, index) => (index === 0 ? held.promise : 200))
  const rig = open(
    aLive({
      destinations: [
        filtered(1, hook, []),
        filtered(2, hook, [{ kind: 'drop', if: { types: ['track'] } }]),
      ],
    }),
    { partitions: 1 },
  )
  const first = rig.start()
  await rig.append([rig.aCall({ userId: 'held' }), rig.aCall({ userId: 'free' })])
  // One is done, and written down as done; the other is on its way when the process dies.
  await until(async () => (await ledger()).delivered === 1, 'the free one is recorded')
  first.crash()
  held.resolve(200)
  rig.start()
  await drained(rig)
  expect(await ledger()).toMatchObject({ delivered: 2, filtered: 2 })
})
