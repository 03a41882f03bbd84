// Gaining a partition with much parked: what waits is remembered by the page, whole or not at all.
import { expect, test } from 'vitest'
import type { Pool } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

const users = 14
const chainsPage = 4
/** On a machine that does much else. */
const patienceMs = 150_000
const lasting = { chainMax: 1_000_000, headMaxMs: 86_400_000 }

/** As the database, telling of each page of chains, which may fail. */
const watched = (onPage: (rows: number) => void): Pool => ({
  ...database.pool,
  query: async (text, values) => {
    const result = await database.pool.query(text, values)
    if (/chain, count\(\*\)/.test(text)) onPage(result.rows.length)
    return result as never
  },
})

const scene = async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const live = aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] })
  const rig = open(live, { partitions: 1, limits: { ...lasting, chainsPage } })
  const some = (rounds: number) =>
    Array.from({ length: rounds * users }, (_, at) => rig.aCall({ userId: `u${at % users}` }))
  const life = rig.start()
  await rig.append(some(2))
  await drained(rig)
  await life.running.stop()
  return { hook, rig, some }
}

test('every chain is known again, however many pages they are read in', async () => {
  const { rig, some } = await scene()
  const pages: number[] = []
  rig.start({}, 5_000, { pool: watched((rows) => pages.push(rows)) })
  await rig.append(some(1))
  await drained(rig)
  expect(Math.max(...pages)).toBe(chainsPage)
  expect(pages.length).toBe(Math.ceil(users / chainsPage))
  const later = (await rowsOf('parked')).slice(-users)
  expect(later.map(({ reason }) => reason)).toEqual(Array(users).fill('behind_parked'))
})

test('a gain that fails half-way is made again from its start, and order holds', async () => {
  const { hook, rig, some } = await scene()
  let pages = 0
  const pool = watched(() => {
    pages += 1
    if (pages === 3) throw new Error('the connection is gone')
  })
  rig.start({}, 5_000, { pool })
  await rig.append(some(1))
  await drained(rig)
  expect(pages).toBeGreaterThan(Math.ceil(users / chainsPage))
  const taken: { readonly user: string; readonly n: number }[] = []
  hook.reply(({ json }) => {
    taken.push({ user: String(json['userId']), n: (json['properties'] as { n: number }).n })
    return 200
  })
  await until(
    async () => {
      rig.setNow(rig.now() + 1_000)
      return (await rowsOf('parked')).length === 0
    },
    'nothing is parked',
    patienceMs,
  )
  expect(taken).toHaveLength(3 * users)
  const last = new Map<string, number>()
  for (const { user, n } of taken) {
    expect(n, `user ${user}`).toBeGreaterThan(last.get(user) ?? 0)
    last.set(user, n)
  }
})
