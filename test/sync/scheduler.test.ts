import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { requestSync } from '../../src/sync/request.ts'
import { aDestination, anAudience } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { goLive, openWorld, type World } from './stage.ts'

const { pool } = await cloneDatabase()
let world: World

beforeEach(async () => {
  world = await openWorld(pool)
  const audiences = [1, 2, 3].map((id) => anAudience({ id, name: `a${id}`, key: `a${id}` }))
  world.live.replace({ destinations: [aDestination()], audiences })
})

afterEach(() => world.stopAll())

const minute = 60_000
const hour = 60 * minute

type Run = { audience_ids: number[]; started_at: Date; state: string }

const runs = async () =>
  (await pool.query<Run>('select audience_ids, started_at, state from sync_run order by id')).rows

/** Resolves once nothing is due at the virtual time and every run has ended. */
const settled = () =>
  vi.waitFor(
    async () => {
      const { rows } = await pool.query(
        `select 1 from audience_state left join sync_schedule using (audience_id)
          where next_sync_at is null or next_sync_at <= $1
         union all select 1 from sync_run where state in ('requested', 'running')`,
        [world.clock()],
      )
      expect(rows).toEqual([])
    },
    { timeout: 60_000, interval: 1 },
  )

const walk = async (steps: number, stepMs: number) => {
  for (let step = 0; step < steps; step++) {
    world.advance(stepMs)
    await settled()
  }
}

test('over two days every audience is synced every two to three hours', async () => {
  for (const id of [1, 2, 3]) await goLive(pool, id)
  world.start({ limits: { pollMs: 1 } })
  await settled()
  await walk(288, 10 * minute)
  const all = await runs()
  // They went live together and were merged into one run; their own spreads part them afterwards.
  expect(all[0]?.audience_ids.toSorted()).toEqual([1, 2, 3])
  for (const id of [1, 2, 3]) {
    const starts = all.filter((run) => run.audience_ids.includes(id))
    const gaps = starts.slice(1).map((run, index) => {
      const before = starts[index] as Run
      return run.started_at.getTime() - before.started_at.getTime()
    })
    expect(gaps.length).toBeGreaterThanOrEqual(16)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(2 * hour)
    // Seen at the next step of the clock, never more than one late.
    expect(Math.max(...gaps)).toBeLessThanOrEqual(3 * hour + 10 * minute)
    expect(new Set(gaps).size).toBeGreaterThan(3)
  }
  expect(all.some(({ audience_ids }) => audience_ids.length === 1)).toBe(true)
})

test('the slots survive a restart', async () => {
  await goLive(pool, 1)
  const first = world.start({ limits: { pollMs: 1 } })
  await settled()
  await first.stop()
  world.advance(119 * minute)
  world.start({ limits: { pollMs: 1 } })
  await settled()
  // A run of its own would come before a request is taken up twice.
  await requestSync(pool, { audienceIds: [1], at: world.clock() })
  await settled()
  expect((await runs()).map(({ audience_ids }) => audience_ids)).toEqual([[1], [1]])
  world.advance(3 * hour)
  await settled()
  expect(await runs()).toHaveLength(3)
})

test('an audience that misses many slots is synced once, not once for each', async () => {
  await goLive(pool, 1)
  world.start({ limits: { pollMs: 1 } })
  await settled()
  world.advance(100 * hour)
  await settled()
  expect(await runs()).toHaveLength(2)
})

test('a new definition is synced as soon as it is live, not at its slot', async () => {
  await goLive(pool, 1, 1)
  world.start({ limits: { pollMs: 1 } })
  await settled()
  await goLive(pool, 1, 2)
  await vi.waitFor(async () => expect(await runs()).toHaveLength(2), { timeout: 60_000 })
})
