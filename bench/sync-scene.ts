// What the sync bench works on: memberships of ten audiences, some changed, and the stage that syncs them.
import pino from 'pino'
import { openCodecs } from '../src/log/avro.ts'
import { memoryLog } from '../src/log/memory.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { findSyncRun, requestSync } from '../src/sync/request.ts'
import { startSync } from '../src/sync/sync.ts'
import { aConfiguration, aDestination } from '../test/support/configuration.ts'
import { audiencesOf, one } from './project-audiences.ts'
import { lookMs } from './project-place.ts'
import { partitions } from './project-scene.ts'

export const audiences = audiencesOf(one)
  .filter(({ kind }) => kind === 'audience')
  .slice(0, 10)

const dayMs = 86_400_000

/** Everything is synced; what the bench changes is all that a run will find. */
export const loadMembers = async (pool: Pool, members: number): Promise<void> => {
  await pool.query('truncate membership')
  const each = members / audiences.length
  for (const { id } of audiences)
    await pool.query(
      `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
       select $1, k % 64, k, 'user-' || k, true, true from generate_series(1, $2::int) k`,
      [id, each],
    )
  await pool.query('vacuum analyze membership')
}

/** As many members, spread evenly over users and audiences, leave; they come back with the next call. */
export const changeMembers = async (
  pool: Pool,
  { members, changed }: { readonly members: number; readonly changed: number },
): Promise<void> => {
  const each = members / audiences.length
  await pool.query(
    `update membership set cur = false where (user_key + audience_id) % $1 = 0 and user_key <= $2`,
    [members / changed, each],
  )
}

/** What left is a member again. */
export const restoreMembers = async (pool: Pool, members: number): Promise<void> => {
  await pool.query(
    `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
     select a, k % 64, k, 'user-' || k, true, true
       from unnest($1::int[]) a, generate_series(1, $2::int) k
     on conflict do nothing`,
    [audiences.map(({ id }) => id), members / audiences.length],
  )
  await pool.query('vacuum analyze membership')
}

export const openSync = async (pool: Pool) => {
  const ids = audiences.map(({ id }) => id)
  await pool.query(
    `insert into audience_state (audience_id, workspace_id, version, state, live_at, condition, definition)
     select a, 1, 1, 'live', $3, c, '' from unnest($1::int[], $2::jsonb[]) as t(a, c)`,
    [ids, audiences.map(({ condition }) => JSON.stringify(condition)), new Date()],
  )
  const clock = () => new Date()
  const log = memoryLog({ partitions, clock })
  const codecs = await openCodecs({})
  // Nothing falls due by itself.
  const configured = audiences.map((audience) => ({ ...audience, syncEveryMs: 365 * dayMs }))
  const configuration = aConfiguration({ audiences: configured, destinations: [aDestination()] })
  const live = { now: () => configuration, onChange: () => () => undefined }
  const logger = pino({ level: process.env['BENCH_LOG'] ?? 'silent' })
  const [source, appender] = [log.source(), log.appender()]
  const stage = startSync({ source, appender, codecs, pool, live, clock, logger })
  stage.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  return {
    appender,
    codecs,
    /** Messages emitted. */
    sync: async (): Promise<number> => {
      const id = await requestSync(pool, { audienceIds: ids, at: clock() })
      for (;;) {
        const run = await findSyncRun(pool, id)
        if (run?.state === 'finished') return run.emitted
        if (run?.state === 'failed') throw new Error(run.reason ?? 'the run failed')
        await new Promise((resolve) => setTimeout(resolve, lookMs))
      }
    },
    stop: () => stage.stop(),
  }
}
