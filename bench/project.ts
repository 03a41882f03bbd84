// project against a bare bulk upsert of rows as wide as the mean row the projector writes.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { loadPlan } from '../src/audience/plan.ts'
import { openCodecs } from '../src/log/avro.ts'
import { memoryLog } from '../src/log/memory.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { startProject } from '../src/project/project.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'
import { loadBare } from './project-bare.ts'
import type { Order, Usage } from './project-contender.ts'
import { audiences, liveOf, loadUsers, partitions } from './project-scene.ts'

const budget = 0.4

export const run = async (span: Span): Promise<void> => {
  // The long form loads a million users; a form that has to fit into a minute, as many as load in time.
  const users = span.seconds >= 5 ? 1_000_000 : 100_000
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({
    dataDir,
    settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
  })
  process.env['BENCH_DATABASE_URL'] = postgres.url
  const pool = openPool({ url: postgres.url, connectionsMax: 8, name: 'bench' })
  const children: ChildProcess[] = []
  try {
    await migrate(pool)
    const now = Date.now()
    await buildAudiences(pool)
    await loadUsers(pool, await loadPlan(pool), { users, now })
    const width = await meanWidth(pool)
    await loadBare(pool, { users, width })
    console.log(`${users.toLocaleString('en-US')} users, packed state ${width} bytes`)
    await runPairs({
      name: 'project',
      budget,
      unit: 'events/s',
      bare: await openBare({ pool, children, users, width }),
      product: await openProduct({ pool, children, users, now }),
      ...span,
    })
  } finally {
    for (const child of children) child.disconnect()
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
    await pool.close()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** A projector over an empty log makes the plan. */
const buildAudiences = async (pool: Pool): Promise<void> => {
  const clock = () => new Date()
  const source = memoryLog({ partitions, clock }).source()
  const { call } = await openCodecs({})
  const logger = pino({ level: 'silent' })
  const projector = startProject({
    source,
    codecs: { call },
    pool,
    live: liveOf(audiences),
    clock,
    logger,
  })
  while (await waitsForBuild(pool)) await sleep(20)
  await projector.stop()
  // The contender's log starts at its beginning, too.
  await pool.query(`delete from position where reader = 'project'`)
}

const waitsForBuild = async (pool: Pool): Promise<boolean> => {
  const { rows } = await pool.query<{ live: number }>(
    `select count(*)::int as live from audience_state where state = 'live'`,
  )
  return rows[0]?.live !== audiences.length
}

type Scene = {
  readonly pool: Pool
  readonly children: ChildProcess[]
  readonly users: number
}

const openBare = async (scene: Scene & { readonly width: number }): Promise<Run> => {
  const child = await contender(scene.children, 'bare')
  let before = await ask(child, { type: 'stop' })
  return async (seconds) => {
    await scene.pool.query('checkpoint')
    const { users, width } = scene
    const after = await ask(child, { type: 'bare', seconds, users, width })
    const { rows = 0, seconds: took = 0 } = after
    const figure = { rate: rows / took, notes: { 'CPU µs/row': microsOf(before, after) / rows } }
    before = after
    return figure
  }
}

/** Events made for the first run, for each second it should last. */
const firstRate = 10_000

const openProduct = async (scene: Scene & { readonly now: number }): Promise<Run> => {
  const { pool, users, now } = scene
  const child = await contender(scene.children, 'product')
  let rate = firstRate
  let end = 0
  return async (seconds): Promise<Figure> => {
    const events = Math.ceil(rate * seconds)
    end += events
    await ask(child, { type: 'fill', events, users, now })
    const written = await versions(pool)
    await pool.query('checkpoint')
    const began = performance.now()
    const before = await ask(child, { type: 'start' })
    await reached(pool, child, end)
    rate = events / ((performance.now() - began) / 1_000)
    const after = await ask(child, { type: 'start' })
    assert.equal(await versions(pool), written + events, 'every event writes one row')
    return {
      rate,
      notes: { 'CPU µs/event': microsOf(before, after) / events, 'RSS MB': after.rssBytes / 1e6 },
    }
  }
}

const microsOf = (before: Usage, after: Usage) =>
  after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system

const versions = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ sum: number }>('select sum(ver)::float8 as sum from ustate')
  return rows[0]?.sum ?? 0
}

/** Counted where the effects are: positions move in the transaction that writes the users. */
const reached = async (pool: Pool, child: ChildProcess, end: number): Promise<void> => {
  for (;;) {
    const { rows } = await pool.query<{ sum: number }>(
      `select sum(next)::float8 as sum from position where reader = 'project'`,
    )
    if ((rows[0]?.sum ?? 0) >= end) return
    if (child.exitCode !== null) throw new Error('the projector died')
    await sleep(10)
  }
}

const meanWidth = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ width: number }>(
    'select round(avg(octet_length(st)))::int as width from ustate',
  )
  return rows[0]?.width ?? 0
}

const contender = async (children: ChildProcess[], kind: string): Promise<ChildProcess> => {
  const flags = process.env['BENCH_FLAGS']?.split(' ') ?? []
  const file = new URL('project-contender.ts', import.meta.url)
  const child = fork(file, [kind], { execArgv: flags })
  children.push(child)
  await heard(child)
  return child
}

const ask = (child: ChildProcess, order: Order): Promise<Usage> => {
  child.send(order)
  return heard(child)
}

const heard = async (child: ChildProcess): Promise<Usage> => {
  const over = new AbortController()
  const { signal } = over
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`)
  })
  died.catch(() => undefined)
  const [message] = (await Promise.race([once(child, 'message', { signal }), died])) as [
    Usage & { readonly error?: string },
  ]
  over.abort()
  if (message.error !== undefined) throw new Error(message.error)
  return message
}
