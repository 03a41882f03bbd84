import { afterEach, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import type { Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

/** Who never answers must not time out before the crash, however slow the machine is. */
const patienceMs = 60_000

/** Whatever crashed, and whenever: every pair consumed is somewhere. */
afterEach(async () => {
  expect(sumLedger(await loadLedger(database.pool)).gap).toBe(0n)
})

const countsOf = ({ requests }: Receiver): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const { json } of requests) {
    const { n } = json['properties'] as { n: number }
    counts.set(n, (counts.get(n) ?? 0) + 1)
  }
  return counts
}

const scene = async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const many = (length: number) =>
    Array.from({ length }, (_, at) => rig.aCall({ userId: `u${at}` }))
  return { hook, rig, many }
}

test('1: a crash before the request loses nothing and repeats nothing', async () => {
  const { hook, rig } = await scene()
  const life = rig.start()
  let crashed = false
  life.beforePost = () => {
    crashed = true
    life.crash()
  }
  await rig.append([rig.aCall()])
  await until(() => crashed, 'the crash')
  expect(hook.requests.length).toBe(0)
  rig.start()
  await drained(rig)
  expect(hook.requests.length).toBe(1)
})

test('2: a crash after the request, before its answer, repeats only what was in flight', async () => {
  const { hook, rig, many } = await scene()
  const life = rig.start({ roundsPerLaneMax: 4, positionEveryMs: 5 }, patienceMs)
  await rig.append(many(20))
  await drained(rig)
  hook.reply(() => 'hang')
  await rig.append(many(10))
  await until(() => hook.requests.length === 24, 'four are in flight')
  life.crash()
  hook.reply(() => 200)
  rig.start()
  await drained(rig)
  const counts = [...countsOf(hook).values()]
  expect(counts.length).toBe(30)
  expect(counts.filter((times) => times > 1).length).toBe(4)
  expect(hook.requests.length).toBe(34)
})

test('3: a crash after successes that no position has yet repeats at most those', async () => {
  const { hook, rig, many } = await scene()
  const life = rig.start({ positionEveryMs: 1_000_000 })
  await rig.append(many(50))
  await until(() => hook.requests.length === 50, 'all were sent')
  life.crash()
  rig.start()
  await drained(rig)
  expect([...countsOf(hook).values()].every((times) => times <= 2)).toBe(true)
  expect(countsOf(hook).size).toBe(50)
})

test('3: what the completion bitmap holds is not sent again, nor to destinations done already', async () => {
  const [slow, fast] = [await receiver(), await receiver()]
  slow.reply(({ json }) => (json['userId'] === 'u0' ? 'hang' : 200))
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(slow.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(fast.url) }),
  ]
  const rig = open(aLive({ destinations }), { partitions: 1 })
  const life = rig.start({}, patienceMs)
  await rig.append(Array.from({ length: 100 }, (_, at) => rig.aCall({ userId: `u${at}` })))
  await until(() => slow.requests.length + fast.requests.length === 200, 'all were sent')
  const { decodeState } = await import('../../src/deliver/position-state.ts')
  await until(async () => {
    const { rows } = await database.pool.query<{ state: Buffer | null }>(
      "select state from position where reader = 'deliver' and topic = 'calls'",
    )
    const { settled } = decodeState(rows[0]?.state ?? null, 0)
    // Of the last byte only the bits within the length speak of offsets.
    const open = Array.from({ length: settled.length }, (_, at) => at).filter(
      (at) => (((settled.bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 0,
    )
    return settled.length === 100 && open.join() === '0' && settled.done.get(0)?.[0] === 2
  }, 'the position row says so')
  life.crash()
  slow.reply(() => 200)
  rig.start()
  await drained(rig)
  expect(fast.requests.length).toBe(100)
  expect(slow.requests.length).toBe(101)
  expect(slow.requests.at(-1)?.json['userId']).toBe('u0')
})

test('4: a crash after a failure, before it is parked, costs one more try', async () => {
  const { hook, rig } = await scene()
  hook.reply(() => 503)
  const life = rig.start()
  let crashed = false
  await rig.append([rig.aCall()])
  life.afterPost = () => {
    life.beforeTransaction = () => {
      crashed = true
      life.crash()
    }
  }
  await until(() => crashed, 'the crash')
  expect(await rowsOf('parked')).toEqual([])
  rig.start()
  await drained(rig)
  expect(hook.requests.length).toBe(2)
  expect(await rowsOf('parked')).toMatchObject([{ attempts: 1 }])
})

test('5: a crash after parking, before the position moves, repeats nothing', async () => {
  const { hook, rig, many } = await scene()
  hook.reply(({ json }) => (json['userId'] === 'u1' ? 404 : 503))
  const life = rig.start({ positionEveryMs: 1_000_000 })
  await rig.append(many(5))
  await until(async () => (await rowsOf('parked')).length === 4, 'four are parked')
  await until(async () => (await rowsOf('dead')).length === 1, 'one is dead')
  life.crash()
  rig.start()
  await drained(rig)
  expect(hook.requests.length).toBe(5)
  expect((await rowsOf('parked')).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1])
})

test('6: a retry whose owner died after claiming it goes out when its lease has run out', async () => {
  const { hook, rig } = await scene()
  hook.reply(() => 503)
  const life = rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  let crashed = false
  life.beforePost = () => {
    crashed = true
    life.crash()
  }
  rig.setNow(rig.now() + 10_000)
  await until(() => crashed, 'the crash')
  hook.reply(() => 200)
  rig.start()
  await rig.append([rig.aCall({ userId: 'sentinel' })])
  await until(() => hook.requests.length === 2, 'the sentinel arrives')
  expect(await rowsOf('parked')).toMatchObject([{ attempts: 1 }])
  rig.setNow(rig.now() + 30_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'the retry is delivered')
  expect(hook.requests.length).toBe(3)
})

test('6: a retry whose owner died after a success is sent at most once more', async () => {
  const { hook, rig } = await scene()
  hook.reply(() => 503)
  const life = rig.start()
  await rig.append([rig.aCall()])
  await drained(rig)
  hook.reply(() => 200)
  life.afterPost = () => life.crash()
  rig.setNow(rig.now() + 10_000)
  await until(() => hook.requests.length === 2, 'the retry succeeds')
  rig.start()
  rig.setNow(rig.now() + 30_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'it is settled')
  expect(hook.requests.length).toBe(3)
})

test('an owner that was taken over writes nothing any more', async () => {
  const { hook, rig } = await scene()
  hook.reply(() => 'hang')
  // Time enough to take it over before the round ends, and none to waste.
  rig.start({}, 2_000)
  await rig.append([rig.aCall()])
  await until(() => hook.requests.length === 1, 'it is in flight')
  // Somebody else gained every partition, which the log has not told this owner yet.
  await database.pool.query(
    "update position set epoch = epoch + 1, next = 0 where reader = 'deliver'",
  )
  await until(async () => (await rowsOf('attempt')).length === 1, 'the round has ended')
  const { rows } = await database.pool.query('select next from position where next <> 0')
  expect(rows).toEqual([])
  expect(await rowsOf('parked')).toEqual([])
})

/** A generator of its own, so that a failure can be run again from its seed. */
const dice = (seed: number) => {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

test.each([11, 12, 13])(
  'crashes at random points lose nothing and give nothing up (seed %i)',
  async (seed) => {
    const roll = dice(seed)
    const { hook, rig } = await scene()
    hook.reply(() => (roll(10) < 2 ? 503 : 200))
    const total = 200
    let crashes = 0
    await rig.append(Array.from({ length: total }, (_, at) => rig.aCall({ userId: `u${at % 40}` })))
    while (crashes < 8) {
      const life = rig.start({ positionEveryMs: 20, roundsPerLaneMax: 4 })
      let left = 1 + roll(40)
      let dead = false
      const step = () => {
        left -= 1
        if (left > 0 || dead) return
        dead = true
        life.crash()
      }
      life.beforePost = step
      life.afterPost = step
      life.beforeTransaction = step
      life.afterTransaction = step
      await until(async () => {
        if (!dead) rig.setNow(rig.now() + 1_000)
        return dead
      }, `crash ${crashes}, seed ${seed}`)
      crashes += 1
    }
    rig.start()
    await drained(rig)
    await until(async () => {
      const rows = await rowsOf('parked')
      const idle = rows.every(
        ({ lease_owner, next_at }) =>
          lease_owner === null && (!next_at || next_at.getTime() > rig.now()),
      )
      const orphaned = rows.some(({ next_at }) => next_at && next_at.getTime() > rig.now())
      if (idle || orphaned) rig.setNow(rig.now() + 2_000)
      return rows.length === 0
    }, `nothing is parked, seed ${seed}`)
    const successes = new Set([...countsOf(hook).keys()])
    expect(successes.size, `seed ${seed}`).toBe(total)
    expect(await rowsOf('dead'), `seed ${seed}`).toEqual([])
  },
)

test.each([
  ['sent', 200, 0],
  ['parked', 500, 5],
])(
  'what is %s after an owner of before took the epoch late is not lost',
  async (_, status, parked) => {
    const { hook, rig, many } = await scene()
    rig.start()
    await rig.append(many(5))
    await drained(rig)
    // Its lease is long lost, its statement comes through only now: the log will never say so.
    await database.pool.query("update position set epoch = epoch + 1 where reader = 'deliver'")
    hook.reply(() => status)
    await rig.append(many(5))
    await drained(rig)
    expect(countsOf(hook).size).toBe(10)
    expect(await rowsOf('parked')).toHaveLength(parked)
  },
)
