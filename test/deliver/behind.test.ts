// Where Postgres is slower than receivers, no more rows are taken than can be settled before their leases end.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, aSource, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, database } = await useRig()

test('rows that were delivered do not pile up before a slow Postgres', async () => {
  const total = 300
  const limits = { claimMax: 20, claimShareMin: 1, deskBatchMax: 5 }
  const hook = await receiver()
  hook.reply(() => 503)
  const destinations = Array.from({ length: total }, (_, at) =>
    aDestination({ id: at + 1, name: `D${at}`, webhooks: to(`${hook.url}/${at}`) }),
  )
  let isSlow = false
  const slow: Pool = {
    ...database.pool,
    transaction: async (work, options) => {
      if (isSlow) await sleep(20)
      return database.pool.transaction(work, options)
    },
  }
  const rig = open(aLive({ destinations }), { limits, pool: slow })
  rig.start()
  await rig.append([rig.aCall()])
  await until(async () => (await rowsOf('parked')).length === total, 'all are parked')

  const tried = hook.requests.length
  hook.reply(() => 200)
  isSlow = true
  rig.setNow(rig.now() + 10_000)
  let most = 0
  await until(async () => {
    // First what was delivered: what is delivered while Postgres answers is none of those it has not settled.
    const delivered = hook.requests.length - tried
    const settled = total - (await rowsOf('parked')).length
    most = Math.max(most, delivered - settled)
    return settled === total
  }, 'all are settled')
  // A claim more than may wait, and the requests in flight meanwhile.
  expect(most).toBeLessThan(3 * limits.claimMax)
  expect(hook.requests.length).toBe(tried + total)
})

test('what becomes of claimed rows does not wait behind all that another destination has to park', async () => {
  // So few that they break no circuit.
  const [many, few] = [600, 8]
  const sources = [aSource(), aSource({ id: 2, writeKey: 'wk_2' })]
  const hook = await receiver()
  hook.reply(() => 503)
  const destinations = [
    aDestination({
      id: 1,
      name: 'Down',
      sourceIds: new Set([1]),
      webhooks: to(`${hook.url}/down`),
    }),
    aDestination({
      id: 2,
      name: 'Back',
      sourceIds: new Set([2]),
      webhooks: to(`${hook.url}/back`),
    }),
  ]
  let isSlow = false
  const slow: Pool = {
    ...database.pool,
    transaction: async (work, options) => {
      if (isSlow) await sleep(50)
      return database.pool.transaction(work, options)
    },
  }
  const parked = async () => {
    const { rows } = await database.pool.query<{ down: number; back: number }>(
      `select count(*) filter (where destination_id = 1)::int as down,
              count(*) filter (where destination_id = 2)::int as back from parked`,
    )
    return rows[0] as { down: number; back: number }
  }
  const rig = open(aLive({ sources, destinations }), { limits: { deskBatchMax: 5 }, pool: slow })
  rig.start()
  const calls = (count: number, sourceId: number) =>
    Array.from({ length: count }, (_, at) => rig.aCall({ userId: `u${at}`, sourceId }))
  await rig.append(calls(few, 2))
  await until(async () => (await parked()).back === few, 'the few are parked')
  hook.reply(({ path }) => (path.endsWith('/back') ? 200 : 503))
  isSlow = true
  await rig.append(calls(many, 1))
  await until(async () => (await parked()).down > 0, 'the many begin to be parked')
  rig.setNow(rig.now() + 15_000)
  let left = await parked()
  await until(async () => {
    left = await parked()
    return left.back === 0
  }, 'the few are settled')
  expect(left.down).toBeLessThan(many)
})
