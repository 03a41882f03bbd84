// project against a bare bulk upsert of rows as wide as the mean row the projector writes.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { copyRows } from '../src/audience/copy.ts'
import { loadPlan } from '../src/audience/plan.ts'
import { openCodecs } from '../src/log/avro.ts'
import { memoryLog } from '../src/log/memory.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { projectLimits, startProject } from '../src/project/project.ts'
import { type Figure, runPairs, type Span } from './pairs.ts'
import { audiences, callOf, liveOf, loadUsers } from './project-scene.ts'

const budget = 0.4
const batchRows = projectLimits.batchCallsMax
/** Events made for one run, for each second it should last: about what the product does. */
const eventsPerSecond = 10_000
const partitions = { calls: 12, 'calls.import': 12, outbound: 12 }

export const run = async (span: Span): Promise<void> => {
  // The long form loads a million users; a form that has to fit into a minute, as many as load in time.
  const users = span.seconds >= 5 ? 1_000_000 : 100_000
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({
    dataDir,
    settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
  })
  const pool = openPool({ url: postgres.url, connectionsMax: 8, name: 'bench' })
  try {
    await migrate(pool)
    const product = await openProduct(pool, users)
    const width = await meanWidth(pool)
    await loadBare(pool, { users, width })
    const bare = (seconds: number) => upsertFor(pool, { users, width, seconds })
    console.log(`${users.toLocaleString('en-US')} users, packed state ${width} bytes`)
    await runPairs({
      name: 'project',
      budget,
      unit: 'events/s',
      bare,
      product: product.run,
      ...span,
    })
    await product.stop()
  } finally {
    await pool.close()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

const openProduct = async (pool: Pool, users: number) => {
  const now = Date.now()
  const clock = () => new Date(now)
  const log = memoryLog({ partitions, clock })
  const { call: codec } = await openCodecs({})
  const deps = {
    source: log.source(),
    codecs: { call: codec },
    pool,
    live: liveOf(audiences),
    clock,
    logger: pino({ level: process.env['BENCH_LOG'] ?? 'silent' }),
  }
  const first = startProject(deps)
  while (await waitsForBuild(pool)) await sleep(20)
  await first.stop()
  await loadUsers(pool, await loadPlan(pool), { users, now })
  const projector = startProject({ ...deps, source: log.source() })
  const appender = log.appender()
  let number = 0
  const product = async (seconds: number): Promise<Figure> => {
    const events = Math.ceil(eventsPerSecond * seconds)
    const entries = Array.from({ length: events }, () => callOf(number++, { users, now, codec }))
    const before = await versions(pool)
    await pool.query('checkpoint')
    const cpu = process.cpuUsage()
    const began = performance.now()
    for (let at = 0; at < events; at += batchRows)
      await appender.append('calls', entries.slice(at, at + batchRows))
    await Promise.race([reached(pool, number), projector.done])
    const elapsed = (performance.now() - began) / 1_000
    const { user, system } = process.cpuUsage(cpu)
    assert.equal(await versions(pool), before + events, 'every event writes one row')
    await forgetCalls(log)
    return {
      rate: events / elapsed,
      notes: {
        'CPU µs/event': (user + system) / events,
        'RSS MB': process.memoryUsage.rss() / 1e6,
      },
    }
  }
  return { run: product, stop: () => projector.stop() }
}

const waitsForBuild = async (pool: Pool): Promise<boolean> => {
  const { rows } = await pool.query<{ live: number }>(
    `select count(*)::int as live from audience_state where state = 'live'`,
  )
  return rows[0]?.live !== audiences.length
}

const versions = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ sum: number }>('select sum(ver)::float8 as sum from ustate')
  return rows[0]?.sum ?? 0
}

const reached = async (pool: Pool, end: number): Promise<void> => {
  for (;;) {
    const { rows } = await pool.query<{ sum: number }>(
      `select sum(next)::float8 as sum from position where reader = 'project'`,
    )
    if ((rows[0]?.sum ?? 0) >= end) return
    await sleep(10)
  }
}

/** The log in memory would otherwise grow with every run. */
const forgetCalls = async (log: ReturnType<typeof memoryLog>): Promise<void> => {
  const bounds = await log.source().bounds('calls')
  for (const [partition, { end }] of bounds.entries()) log.truncate('calls', partition, end)
}

const meanWidth = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ width: number }>(
    'select round(avg(octet_length(st)))::int as width from ustate',
  )
  return rows[0]?.width ?? 0
}

type Bare = { readonly users: number; readonly width: number }

const bareRow = (key: number, width: number) => ({
  key,
  shard: key % 64,
  workspaceId: 1,
  ver: key,
  userId: `user-${key}`,
  st: Buffer.alloc(width, key),
  due: 1_800_000_000_000,
  mergedInto: null,
})

const upsert = (pool: Pool, rows: readonly ReturnType<typeof bareRow>[]) =>
  pool.transaction(async (tx) => {
    await tx.query('create temp table if not exists bare_in (like bare) on commit delete rows')
    await tx.copyIn('copy bare_in from stdin (format binary)', copyRows(rows))
    await tx.query(
      `insert into bare select * from bare_in
       on conflict (user_key) do update
         set (ver, user_id, st, due) = (excluded.ver, excluded.user_id, excluded.st, excluded.due)`,
    )
  })

const loadBare = async (pool: Pool, { users, width }: Bare): Promise<void> => {
  await pool.query(
    `create table bare (user_key bigint primary key, shard smallint, workspace_id int, ver bigint,
       user_id text, st bytea, due timestamptz, merged_into bigint) with (fillfactor = 75)`,
  )
  for (let first = 1; first <= users; first += batchRows)
    await upsert(
      pool,
      Array.from({ length: Math.min(batchRows, users - first + 1) }, (_, at) =>
        bareRow(first + at, width),
      ),
    )
  await pool.query('vacuum analyze bare')
}

let bareNumber = 0

/** The same walk over the users as the product's. */
const upsertFor = async (
  pool: Pool,
  { users, width, seconds }: Bare & { readonly seconds: number },
): Promise<Figure> => {
  await pool.query('checkpoint')
  const cpu = process.cpuUsage()
  const began = performance.now()
  let rows = 0
  while (performance.now() - began < seconds * 1_000) {
    await upsert(
      pool,
      Array.from({ length: batchRows }, () => bareRow(((bareNumber++ * 7_919) % users) + 1, width)),
    )
    rows += batchRows
  }
  const elapsed = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { rate: rows / elapsed, notes: { 'CPU µs/row': (user + system) / rows } }
}
