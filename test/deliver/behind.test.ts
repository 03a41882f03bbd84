// Where Postgres is slower than receivers, no more rows are taken than can be settled before their leases end.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
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
    // First what was settled: what is delivered meanwhile only makes it look worse.
    const settled = total - (await rowsOf('parked')).length
    most = Math.max(most, hook.requests.length - tried - settled)
    return settled === total
  }, 'all are settled')
  // A claim more than may wait, and the requests in flight meanwhile.
  expect(most).toBeLessThan(3 * limits.claimMax)
  expect(hook.requests.length).toBe(tried + total)
})
