import { afterAll, expect, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { useRig } from '../deliver/rig.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { openPostgresProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/until.ts'

const { receiver, open, rowsOf, drained, database, lines } = await useRig()
const proxy = await openPostgresProxy(database.url)
const pool = openPool({ url: proxy.url, connectionsMax: 10, name: 'test' })
afterAll(async () => {
  await pool.close()
  await proxy.close()
})

/** Thousands of requests, and as many rows that come and go, on a machine that does much else. */
const patienceMs = 180_000

const scene = async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }), {
    partitions: 2,
    pool,
    limits: { deskMax: 200, waitingMax: 400, laneMax: 200, pauseMs: 20, positionEveryMs: 20 },
  })
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => rig.aCall({ userId: `u${from + at}` }))
  const distinct = () => new Set(hook.requests.map(({ json }) => json['userId'])).size
  /**
   * What was claimed in a commit that was cut off comes back when its lease is over. Not faster than a
   * slow machine settles what it claimed: leases would always be over before that.
   */
  const untilTimePasses = (holds: () => boolean | Promise<boolean>, what: string) =>
    until(
      async () => {
        rig.setNow(rig.now() + 200)
        return holds()
      },
      what,
      patienceMs,
    )
  const settleAll = async () => {
    await untilTimePasses(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
    await drained(rig)
    await untilTimePasses(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
  }
  const balances = async () => {
    const ledger = sumLedger(await loadLedger(database.pool))
    expect(ledger.gap).toBe(0n)
    return ledger
  }
  return { hook, rig, many, distinct, untilTimePasses, settleAll, balances }
}

const countOf = (msg: string) => lines.filter((line) => line['msg'] === msg).length

test('while Postgres is away intake stops within its bounds, and afterwards nothing is missing', async () => {
  const { hook, rig, many, distinct, untilTimePasses, settleAll, balances } = await scene()
  const tried = new Set<unknown>()
  hook.reply(({ json: { userId } }) => {
    const isFirst = !tried.has(userId)
    tried.add(userId)
    return isFirst && Number(String(userId).slice(1)) % 3 === 0 ? 503 : 200
  })
  rig.start()
  await rig.append(many(0, 100))
  await until(() => distinct() === 100, 'all were tried')
  proxy.cut()
  const total = 4_000
  await rig.append(many(100, total - 100))
  await until(() => countOf('desk.failed') > 2, 'the desk keeps trying')
  // Reading stops: what has no place in Postgres is bounded, and so is what is sent unrecorded.
  let seen = -1
  await until(async () => {
    const before = seen
    seen = hook.requests.length
    await new Promise((resolve) => setTimeout(resolve, 300))
    return before === hook.requests.length
  }, 'nothing is sent any more')
  expect(distinct()).toBeLessThan(total / 2)
  proxy.heal()
  await untilTimePasses(() => distinct() === total, 'everything is tried')
  hook.reply(() => 200)
  await settleAll()
  expect(await rowsOf('dead')).toEqual([])
  const ledger = await balances()
  expect(ledger).toMatchObject({ consumed: BigInt(total), delivered: BigInt(total) })
})

test('with Postgres cut off again and again under load nothing is lost', async () => {
  const { hook, rig, many, distinct, untilTimePasses, settleAll, balances } = await scene()
  let index = 0
  hook.reply(() => {
    index += 1
    return index % 5 === 0 ? 503 : 200
  })
  rig.start()
  const total = 1_500
  for (let cuts = 0; cuts < 5; cuts += 1) {
    await rig.append(many((cuts * total) / 5, total / 5))
    const until5 = distinct() + 50
    await untilTimePasses(() => distinct() >= until5, `cut ${cuts}`)
    proxy.cut()
    const failed = countOf('desk.failed')
    await until(() => countOf('desk.failed') > failed, 'it is noticed')
    proxy.heal()
  }
  await untilTimePasses(() => distinct() === total, 'everything is tried')
  hook.reply(() => 200)
  await settleAll()
  expect(await rowsOf('dead')).toEqual([])
  await balances()
})
