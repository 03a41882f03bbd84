import { afterEach, expect, test } from 'vitest'
import { type Ledger, loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

const balance = async (): Promise<Ledger> => sumLedger(await loadLedger(database.pool))

const outcomesOf = ({ gap, consumed, ...outcomes }: Ledger): bigint =>
  Object.values(outcomes).reduce((sum, amount) => sum + amount, 0n)

const watching: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of watching.splice(0)) await stop()
})

/** Looks at the ledger all the time while something else goes on; every look must balance. */
const watch = () => {
  const wrong: Ledger[] = []
  let looks = 0
  let isOver = false
  watching.push(() => {
    isOver = true
    return done
  })
  const look = async () => {
    while (!isOver) {
      const ledger = await balance()
      looks += 1
      if (ledger.gap !== 0n || ledger.consumed !== outcomesOf(ledger)) wrong.push(ledger)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const done = look()
  return async () => {
    isOver = true
    await done
    return { wrong, looks }
  }
}

test('messages parked are followed to their end: delivered, dead or cancelled', async () => {
  const [good, bad, off] = [await receiver(), await receiver(), await receiver()]
  const status = new Map<unknown, number>([
    ['temporary', 503],
    ['dies', 503],
    ['final', 404],
  ])
  bad.reply(({ json }) => status.get(json['userId']) ?? 200)
  off.reply(() => 503)
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(good.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(bad.url) }),
    aDestination({ id: 3, name: 'C', webhooks: to(off.url) }),
  ]
  const live = aLive({ destinations })
  const rig = open(live, { partitions: 1 })
  rig.start()
  const stopWatching = watch()
  const once = rig.aCall({ userId: 'fine' })
  await rig.append([
    once,
    once,
    rig.aCall({ userId: 'fine', filtered: 'blocked' as never }),
    rig.aCall({ userId: 'fine' }, { integrations: { A: false } }),
    ...['temporary', 'dies', 'final'].map((userId) => rig.aCall({ userId })),
  ])
  await drained(rig)
  await until(async () => (await balance()).inFlight === 0n, 'the positions have it all')
  // 5 calls to three destinations, less A for one; a duplicate; nobody is offered a filtered one.
  expect(await balance()).toMatchObject({
    consumed: 16n,
    delivered: 4n + 2n,
    parked: 2n + 5n,
    dead: 1n,
    filtered: 1n,
    duplicate: 1n,
    cancelled: 0n,
    gap: 0n,
  })
  status.set('temporary', 200)
  status.set('dies', 410)
  rig.setNow(rig.now() + 15_000)
  await until(async () => (await balance()).dead === 2n, 'one of the parked ones dies')
  live.replace({ destinations: destinations.map((one) => ({ ...one, enabled: one.id !== 3 })) })
  await until(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
  expect(await balance()).toMatchObject({
    consumed: 16n,
    delivered: 4n + 3n,
    parked: 0n,
    dead: 2n,
    cancelled: 5n,
    inFlight: 0n,
    gap: 0n,
  })
  const { wrong, looks } = await stopWatching()
  expect(wrong).toEqual([])
  expect(looks).toBeGreaterThan(3)
})

const dice = (seed: number) => {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

test.each([21, 22, 23, 24])(
  'it balances at every moment of crashes at random points (seed %i)',
  async (seed) => {
    const roll = dice(seed)
    const hooks = [await receiver(), await receiver()]
    for (const hook of hooks) hook.reply(() => [200, 200, 200, 503, 404][roll(5)] as number)
    const destinations = hooks.map(({ url }, at) =>
      aDestination({ id: at + 1, name: `D${at}`, webhooks: to(url) }),
    )
    const rig = open(aLive({ destinations }), { partitions: 1 })
    const total = 150
    await rig.append(Array.from({ length: total }, (_, at) => rig.aCall({ userId: `u${at % 30}` })))
    const stopWatching = watch()
    for (let crashes = 0; crashes < 6; crashes += 1) {
      const life = rig.start({ positionEveryMs: 20, roundsPerLaneMax: 4 })
      let left = 5 + roll(60)
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
        if (!dead) rig.setNow(rig.now() + 5_000)
        return dead
      }, `crash ${crashes}, seed ${seed}`)
      rig.setNow(rig.now() + 31_000)
    }
    rig.start({ positionEveryMs: 20 })
    await drained(rig)
    await until(async () => {
      rig.setNow(rig.now() + 5_000)
      return (await rowsOf('parked')).length === 0
    }, `nothing is parked, seed ${seed}`)
    await until(async () => (await balance()).inFlight === 0n, `all is settled, seed ${seed}`)
    const { wrong } = await stopWatching()
    expect(wrong, `seed ${seed}`).toEqual([])
    const lines = await loadLedger(database.pool)
    const repeated = lines.reduce((sum, line) => sum + line.repeated, 0n)
    const ledger = sumLedger(lines)
    // Each pair once, and besides only what a crash made the log be read again for.
    expect(ledger.delivered + ledger.dead - repeated, `seed ${seed}`).toBe(BigInt(total * 2))
    expect((await rowsOf('dead')).length, `seed ${seed}`).toBe(Number(ledger.dead))
  },
)

test('a parked row that vanished is a gap', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append(Array.from({ length: 5 }, (_, at) => rig.aCall({ userId: `u${at}` })))
  await drained(rig)
  expect(await balance()).toMatchObject({ parked: 5n, gap: 0n })
  await database.pool.query('delete from parked where id in (select min(id) from parked)')
  expect(await balance()).toMatchObject({ parked: 4n, gap: 1n })
})

test('an offset that is settled without its row, as after a fail-over that lost it, is a gap', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start()
  await rig.append(Array.from({ length: 5 }, (_, at) => rig.aCall({ userId: `u${at}` })))
  await drained(rig)
  await life.running.stop()
  await database.pool.query(`with lost as (
    delete from parked where id in (select min(id) from parked) returning topic, partition, destination_id)
    update delivery_ledger l set taken = taken - 1 from lost
     where (l.topic, l.partition, l.destination_id) = (lost.topic, lost.partition, lost.destination_id)`)
  expect(await balance()).toMatchObject({ gap: 1n })
  // Gaining the partition again does not hide it.
  rig.start()
  await rig.append([rig.aCall({ userId: 'sentinel' })])
  await drained(rig)
  expect(await balance()).toMatchObject({ gap: 1n })
})

test('positions that a version before wrote, which counted roughly, balance from then on', async () => {
  const hook = await receiver()
  hook.reply(({ json }) => (json['userId'] === 'u0' ? 503 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 1,
  })
  const life = rig.start()
  await rig.append(Array.from({ length: 5 }, (_, at) => rig.aCall({ userId: `u${at}` })))
  await drained(rig)
  await life.running.stop()
  const { rows } = await database.pool.query<{ state: Buffer }>(
    "select state from position where topic = 'calls' and state is not null",
  )
  // The format of before: five outcomes, two of them counted as often as they happened, and nothing after.
  const before = Buffer.from(rows[0]?.state.subarray(0, -32) ?? [])
  before.writeUInt8(1, 0)
  before.writeBigInt64BE(77n, before.length - 32)
  await database.pool.query(
    "update position set state = $1 where topic = 'calls' and state is not null",
    [before],
  )
  expect(await balance()).toMatchObject({ gap: 0n, parked: 1n })
  rig.start()
  await rig.append([rig.aCall({ userId: 'u9' })])
  await drained(rig)
  rig.setNow(rig.now() + 1)
  expect(await balance()).toMatchObject({ gap: 0n, parked: 1n, delivered: 5n })
})
