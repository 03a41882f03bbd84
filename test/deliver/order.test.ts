import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Source } from '../../src/log/log.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { Received } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained } = await useRig()

/** The clock runs ahead of what is retried: no message is too old here. */
const unsuspended = { headMaxMs: Number.MAX_SAFE_INTEGER }

/** Turns the clock until nothing is parked any more, never while a lease runs or something is due. */
const untilUnparked = async (rig: ReturnType<typeof open>) => {
  await until(async () => {
    const rows = await rowsOf('parked')
    const now = rig.now()
    const isBusy = rows.some(
      ({ lease_owner, next_at }) => lease_owner !== null || (next_at && next_at.getTime() <= now),
    )
    if (!isBusy) rig.setNow(now + 10_000)
    return rows.length === 0
  }, 'nothing is parked')
}

const eventsOf = (requests: readonly Received[]) => requests.map(({ json }) => json['event'])

test('while a message waits for its retry, later ones of its chain wait behind it, in order', async () => {
  const hook = await receiver()
  hook.reply(({ json }, index) => (json['event'] === 'e1' && index < 2 ? 503 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append(['e1', 'e2', 'e3'].map((event) => rig.aCall({ event })))
  await drained(rig)
  expect(await rowsOf('parked')).toMatchObject([
    { reason: 'temporary', attempts: 1 },
    { reason: 'behind_parked', attempts: 0, next_at: null },
    { reason: 'behind_parked', attempts: 0, next_at: null },
  ])
  await rig.append(['e4'].map((event) => rig.aCall({ event })))
  await drained(rig)
  expect(eventsOf(hook.requests)).toEqual(['e1'])
  await untilUnparked(rig)
  expect(eventsOf(hook.requests)).toEqual(['e1', 'e1', 'e1', 'e2', 'e3', 'e4'])
  await rig.append([rig.aCall({ event: 'e5' })])
  await drained(rig)
  expect(eventsOf(hook.requests).at(-1)).toBe('e5')
  expect(await rowsOf('parked')).toEqual([])
})

test('another chain of the same destination is not held up by a parked one', async () => {
  const hook = await receiver()
  hook.reply(({ json }) => (json['userId'] === 'sick' ? 503 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  const users = Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 'sick' : `u${at}`))
  await rig.append(users.map((userId) => rig.aCall({ userId })))
  await drained(rig)
  expect(hook.requests.length).toBe(41)
})

test('a chain resumes in order after a restart', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start()
  await rig.append(['e1', 'e2'].map((event) => rig.aCall({ event })))
  await drained(rig)
  await life.running.stop()
  hook.reply(() => 200)
  rig.start()
  await rig.append([rig.aCall({ event: 'e3' })])
  await drained(rig)
  await untilUnparked(rig)
  expect(eventsOf(hook.requests)).toEqual(['e1', 'e1', 'e2', 'e3'])
})

test('a chain keeps its order after a restart also where its destination is known to be well', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start()
  await rig.append(['e1', 'e2'].map((event) => rig.aCall({ event })))
  await drained(rig)
  await life.running.stop()
  hook.reply(() => 200)
  rig.start()
  await rig.append([rig.aCall({ event: 'other', userId: 'u2' })])
  await until(() => hook.requests.length === 2, 'another chain is served')
  await rig.append([rig.aCall({ event: 'e3' })])
  await drained(rig)
  expect(eventsOf(hook.requests)).toEqual(['e1', 'other'])
  await untilUnparked(rig)
  expect(eventsOf(hook.requests)).toEqual(['e1', 'other', 'e1', 'e2', 'e3'])
})

/** Fails now and then, remembers what it took: for one user, taken events must ascend. */
const flaky = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >> 8) % 100
  }
}

test.each([1, 2])(
  'every chain keeps its order while a flaky receiver fails a third (seed %i)',
  async (seed) => {
    const hook = await receiver()
    const roll = flaky(seed)
    const taken: { user: string; n: number }[] = []
    hook.reply(({ json }) => {
      if (roll() < 33) return 503
      const { n } = json['properties'] as { n: number }
      taken.push({ user: String(json['userId']), n })
      return 200
    })
    const limits = { ...unsuspended, laneMax: 10, roundsPerLaneMax: 4, claimPerLaneMax: 7 }
    const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
      limits,
    })
    rig.start()
    const calls = Array.from({ length: 160 }, (_, at) => rig.aCall({ userId: `u${at % 13}` }))
    await rig.append(calls)
    await drained(rig)
    await untilUnparked(rig)
    expect(taken.length).toBe(160)
    const last = new Map<string, number>()
    for (const { user, n } of taken) {
      expect(n, `seed ${seed}, user ${user}`).toBeGreaterThan(last.get(user) ?? 0)
      last.set(user, n)
    }
    expect(await rowsOf('dead')).toEqual([])
  },
)

test('what a full lane parks keeps its place in its chain', async () => {
  const [slow, fast] = [await receiver(), await receiver()]
  const roll = flaky(7)
  const taken: { user: string; n: number }[] = []
  slow.reply(({ json }) => {
    const { n } = json['properties'] as { n: number }
    const fails = roll() < 20
    if (!fails) taken.push({ user: String(json['userId']), n })
    return new Promise((resolve) => setTimeout(() => resolve(fails ? 503 : 200), 5))
  })
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(slow.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(fast.url) }),
  ]
  const limits = { ...unsuspended, laneMax: 8, roundsPerLaneMax: 2, claimPerLaneMax: 5 }
  const rig = open(aLive({ destinations }), { limits })
  rig.start()
  await rig.append(Array.from({ length: 200 }, (_, at) => rig.aCall({ userId: `u${at % 40}` })))
  await until(
    async () => (await rowsOf('parked')).some(({ reason }) => reason === 'lane_full'),
    'the full lane parks',
  )
  await until(() => fast.requests.length === 200, 'the fast one has all')
  await drained(rig)
  await untilUnparked(rig)
  expect(taken.length).toBe(200)
  const last = new Map<string, number>()
  for (const { user, n } of taken) {
    expect(n, `user ${user}`).toBeGreaterThan(last.get(user) ?? 0)
    last.set(user, n)
  }
})

/** What was parked without its body takes long to be read again. */
const slowly = (source: Source): Source => ({
  ...source,
  read: async function* (range) {
    await sleep(500)
    yield* source.read(range)
  },
})

test('what its last owner parked waits for what stands before it and is read again', async () => {
  const [slow, fast] = [await receiver(), await receiver()]
  slow.reply(() => new Promise(() => undefined))
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(slow.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(fast.url) }),
  ]
  const limits = { ...unsuspended, laneMax: 1, roundsPerLaneMax: 1, claimEveryMs: 5 }
  const rig = open(aLive({ destinations }), { limits, partitions: 1 })
  const life = rig.start({ claimPerLaneMax: 0 })
  const calls = [{ event: 'e1' }, { event: 'other', userId: 'u2' }, { event: 'e2' }]
  await rig.append(calls.map((call) => rig.aCall(call)))
  await until(async () => (await rowsOf('parked')).length === 1, 'the full lane parks the second')
  life.crash()
  const before = slow.requests.length
  slow.reply(() => 200)
  rig.start({ claimPerLaneMax: 1 }, 5_000, { source: slowly(rig.log.source()) })
  await drained(rig)
  await until(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
  const again = eventsOf(slow.requests.slice(before)).filter((event) => event !== 'other')
  expect(again).toEqual(['e1', 'e2'])
})

test('with more parked chains than are remembered, everything still arrives in order', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const limits = { ...unsuspended, chainsMax: 5 }
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), { limits })
  const life = rig.start()
  const some = (length: number) =>
    Array.from({ length }, (_, at) => rig.aCall({ userId: `u${at % 30}` }))
  await rig.append(some(90))
  await drained(rig)
  await life.running.stop()
  rig.start()
  await rig.append(some(60))
  await drained(rig)
  const taken: { user: string; n: number }[] = []
  hook.reply(({ json }) => {
    taken.push({ user: String(json['userId']), n: (json['properties'] as { n: number }).n })
    return 200
  })
  await untilUnparked(rig)
  const last = new Map<string, number>()
  for (const { user, n } of taken) {
    expect(n, `user ${user}`).toBeGreaterThan(last.get(user) ?? 0)
    last.set(user, n)
  }
  expect(taken.length).toBe(150)
})
