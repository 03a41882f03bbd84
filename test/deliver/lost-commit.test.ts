// Commits of which Postgres' answer never comes: what they did is done once, and known.
import { afterAll, expect, test } from 'vitest'
import { countMatching, findRecovery, insertRecovery } from '../../src/admin/recovery-store.ts'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { openPostgresProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()
const proxy = await openPostgresProxy(database.url)
const pool = openPool({ url: proxy.url, connectionsMax: 10, name: 'test' })
afterAll(async () => {
  await pool.close()
  await proxy.close()
})

const scene = async () => {
  const hook = await receiver()
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  // Many small transactions, so that enough of them can be lost.
  const often = { pauseMs: 20, positionEveryMs: 20, claimEveryMs: 20, recoverEveryMs: 20 }
  const limits = { ...often, deskBatchMax: 5 }
  const rig = open(live, { partitions: 2, pool, limits })
  const nothingParked = () =>
    until(async () => (await rowsOf('parked')).length === 0, 'nothing is parked')
  return { hook, rig, nothingParked, loses: openLoses() }
}

/** Every n-th commit loses its answer. */
const openLoses = () => {
  let lost = 0
  const every = (n: number) => {
    let commits = 0
    proxy.loseCommits(() => {
      commits += 1
      if (n === 0 || commits % n !== 0) return false
      lost += 1
      return true
    })
  }
  return { every, lost: () => lost }
}

const balance = async () => {
  const ledger = sumLedger(await loadLedger(database.pool))
  expect(ledger.gap).toBe(0n)
  return ledger
}

// The clock stands meanwhile, so no lease ever ends.
test.each([3, 2])(
  'with one of %i lost nothing is done twice, forgotten, or waits for its lease',
  async (n) => {
    const { hook, rig, nothingParked, loses } = await scene()
    let failing = true
    // Not so many that its URL counts as broken.
    hook.reply(({ json }) =>
      failing && Number(String(json['userId']).slice(1)) % 2 === 0 ? 503 : 200,
    )
    rig.start()
    loses.every(n)
    // A few visitors with several messages each: what is parked stands before what follows.
    await rig.append(Array.from({ length: 60 }, (_, at) => rig.aCall({ userId: `u${at % 12}` })))
    await drained(rig)
    await until(async () => (await rowsOf('parked')).length === 30, 'half of them are parked')
    failing = false
    rig.setNow(rig.now() + 20_000)
    await nothingParked()
    await until(() => loses.lost() > 3, 'some were lost')
    loses.every(0)
    // Their chains are free again.
    const before = hook.requests.length
    await rig.append(Array.from({ length: 12 }, (_, at) => rig.aCall({ userId: `u${at}` })))
    await drained(rig)
    await nothingParked()
    expect(hook.requests.length).toBe(before + 12)
    expect(await balance()).toMatchObject({ consumed: 72n, delivered: 72n })
  },
)

test('a recovery whose commits are lost sends everything again, once', async () => {
  const { hook, rig, nothingParked, loses } = await scene()
  hook.reply(({ json }) => (json['event'] === 'Fine' ? 200 : 400))
  rig.start()
  const refused = Array.from({ length: 15 }, (_, n) => rig.aCall({ userId: `u${n}` }))
  await rig.append(refused)
  await drained(rig)
  expect(await rowsOf('dead')).toHaveLength(15)
  hook.reply(() => 200)
  hook.requests.splice(0)
  const at = new Date(rig.now())
  const anything = { reason: null, type: null, status: null, messageId: null }
  const filter = { destinationId: 1, ...anything, since: null, until: null }
  const matched = await countMatching(database.pool, filter, at)
  loses.every(2)
  const recovery = { filter, actor: 'test', ratePerSecond: 1_000, matched, at }
  const id = await insertRecovery(database.pool, recovery)
  await until(async () => {
    const found = await findRecovery(database.pool, id)
    return found?.state === 'finished' && found.waiting === 0
  }, 'the recovery has finished and nothing of it waits')
  await nothingParked()
  expect(hook.requests).toHaveLength(15)
  expect(loses.lost()).toBeGreaterThan(0)
  loses.every(0)
  expect(await balance()).toMatchObject({ consumed: 30n, dead: 15n, delivered: 15n })
})

test('whoever locks positions may not stand still for long, lest others wait for them', async () => {
  const idleMs: number[] = []
  const watched: Pool = {
    ...database.pool,
    transaction: (work, options) =>
      database.pool.transaction((tx) => {
        const query: typeof tx.query = (text, values) => {
          // A minute, as without it, is too long for those who wait for the partitions.
          if (/from position\b[^;]* for share/s.test(text)) idleMs.push(options?.idleMs ?? 60_000)
          return tx.query(text, values)
        }
        return work({ ...tx, query })
      }, options),
  }
  const hook = await receiver()
  hook.reply(() => 503)
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const rig = open(live, { partitions: 1, pool: watched })
  rig.start()
  await rig.append([rig.aCall({ userId: 'u1' })])
  await drained(rig)
  expect(await rowsOf('parked')).toHaveLength(1)
  expect(idleMs.length).toBeGreaterThan(0)
  expect(Math.max(...idleMs)).toBeLessThanOrEqual(10_000)
})
