// Where the project benches run: a Postgres whose CPU time can be read, audiences made live, users loaded.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { loadPlan } from '../src/audience/plan.ts'
import type { Audience } from '../src/domain/configuration.ts'
import { openCodecs } from '../src/log/avro.ts'
import { memoryLog } from '../src/log/memory.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { startProject } from '../src/project/project.ts'
import { type Child, openProcesses } from './deliver-processes.ts'
import { cpuUsOf, pidOf } from './deliver-stand.ts'
import { audiencesOf, eventNames, type Wanted } from './project-audiences.ts'
import type { Contender, Order, Usage } from './project-contender.ts'
import { loadUsers } from './project-people.ts'
import { liveOf, partitions } from './project-scene.ts'

export type Place = {
  readonly pool: Pool
  /** Of all its processes so far. */
  postgresCpuUs(): number
  contender(contender: Contender): Promise<Child>
  /** A process of another bench's own. */
  start(file: string): Promise<Child>
}

export const withPlace = async <R>(use: (place: Place) => Promise<R>): Promise<R> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({
    dataDir,
    // A quarter of the machine, as its manual recommends. No checkpoint comes by itself while something is measured.
    settings: {
      shared_buffers: `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`,
      ...{ max_wal_size: '4GB', checkpoint_timeout: '1h' },
    },
  })
  process.env['BENCH_DATABASE_URL'] = postgres.url
  const pool = openPool({ url: postgres.url, connectionsMax: 16, name: 'bench' })
  const processes = openProcesses()
  try {
    await migrate(pool)
    const pid = await pidOf(postgres.url)
    return await use({
      pool,
      postgresCpuUs: () => cpuUsOf(pid),
      contender: async (contender) => {
        const file = 'project-contender.ts'
        const [child] = await processes.start(file, [JSON.stringify(contender)])
        return child
      },
      start: async (file) => (await processes.start(file))[0],
    })
  } finally {
    await processes.end()
    await pool.close()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Loaded = { readonly wanted: Wanted; readonly users: number; readonly now: number }

export const loadPlace = async (pool: Pool, { wanted, users, now }: Loaded): Promise<State> => {
  await buildAudiences(pool, audiencesOf(wanted))
  await reloadUsers(pool, { wanted, users, now })
  const { rows } = await pool.query<State>(
    `select avg(octet_length(st))::float8 as mean, max(octet_length(st))::float8 as most from ustate`,
  )
  return rows[0] as State
}

/** All of them as they were at first. */
export const reloadUsers = async (pool: Pool, { wanted, users, now }: Loaded): Promise<void> => {
  await loadUsers(pool, await loadPlan(pool), { users, now, names: eventNames(wanted) })
  await settle(pool, ['ustate', 'membership'])
}

/**
 * As tables are long after a checkpoint: the first change of a page after one logs all of the page, which
 * in a run of seconds would be most of what is measured, and is next to nothing in the minutes between two.
 */
export const settle = async (pool: Pool, tables: readonly string[]): Promise<void> => {
  await pool.query('checkpoint')
  for (const table of tables)
    await pool.query(`select count(*) from (select 1 from ${table} for update) locked`)
}

/** Bytes of a user's packed state. */
export type State = { readonly mean: number; readonly most: number }

/** A projector over an empty log makes the plan. */
export const buildAudiences = async (pool: Pool, all: readonly Audience[]): Promise<void> => {
  const clock = () => new Date()
  const { call } = await openCodecs({})
  const projector = startProject({
    source: memoryLog({ partitions, clock }).source(),
    codecs: { call },
    pool,
    live: liveOf(all),
    clock,
    logger: pino({ level: 'silent' }),
  })
  projector.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  while ((await countLive(pool)) < all.length) await sleep(20)
  await projector.stop()
  // The contender's log starts at its beginning, too.
  await pool.query(`delete from position where reader = 'project'`)
}

export const countLive = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ live: number }>(
    `select count(*)::int as live from audience_state where state = 'live'`,
  )
  return rows[0]?.live ?? 0
}

/** Rows of users written so far. */
export const countWrites = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ sum: number }>('select sum(ver)::float8 as sum from ustate')
  return rows[0]?.sum ?? 0
}

export const ask = (child: Child, order: Order): Promise<Usage> => child.ask<Usage>(order)

/** Looking costs what is measured, too. */
export const lookMs = 50

/** How many there are then. Counted where the effects are: positions move in the transaction that writes the users. */
export const reached = async (pool: Pool, wanted: number): Promise<number> => {
  for (;;) {
    const count = await countProjected(pool)
    if (count >= wanted) return count
    await sleep(lookMs)
  }
}

const countProjected = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ sum: number }>(
    `select sum(next)::float8 as sum from position where reader = 'project'`,
  )
  return rows[0]?.sum ?? 0
}

export type Spent = {
  /** Those that are counted. */
  readonly events: number
  readonly seconds: number
  readonly nodeUs: number
  readonly postgresUs: number
  /** Rows of users for each event. */
  readonly writes: number
  readonly rssBytes: number
}

type Work = {
  readonly users: number
  readonly events: number
  readonly now: number
  /** So many come before those that are counted, and as many after them. */
  readonly lead: number
}

/**
 * Has a product project so many calls of so many users, and says what they took; one product a place.
 */
export const projecting = (place: Place, child: Child): ((work: Work) => Promise<Spent>) => {
  const { pool } = place
  let end = 0
  return async (work) => {
    const all = work.events + 2 * work.lead
    const start = end + work.lead
    end += all
    await ask(child, { type: 'fill', ...work, events: all })
    const written = await countWrites(pool)
    await ask(child, { type: 'start' })
    const first = await reached(pool, start)
    const postgres = place.postgresCpuUs()
    const began = performance.now()
    const before = await ask(child, { type: 'start' })
    const events = (await reached(pool, end - work.lead)) - first
    const seconds = (performance.now() - began) / 1_000
    const postgresUs = place.postgresCpuUs() - postgres
    const { cpuUs, rssBytes } = await ask(child, { type: 'start' })
    await reached(pool, end)
    const writes = ((await countWrites(pool)) - written) / all
    return { events, seconds, nodeUs: cpuUs - before.cpuUs, postgresUs, writes, rssBytes }
  }
}
