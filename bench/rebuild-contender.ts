// A process of the rebuild bench: holds a log of calls, and folds it anew as the product, or reads and upserts it bare.
import pino from 'pino'
import { watchHeap } from '../src/heap.ts'
import { openCodecs } from '../src/log/avro.ts'
import type { Place } from '../src/log/log.ts'
import { postgresAppender, postgresSource } from '../src/log/postgres.ts'
import { openPool } from '../src/postgres/pool.ts'
import { projectLimits } from '../src/project/project.ts'
import { begin } from '../src/rebuild/begin.ts'
import { type RebuildDeps, vectorOf } from '../src/rebuild/deps.ts'
import { openFold } from '../src/rebuild/fold.ts'
import { rebuildLimits } from '../src/rebuild/limits.ts'
import { openRebuildMeter } from '../src/rebuild/meter.ts'
import { schemaOf } from '../src/rebuild/schema.ts'
import { answerParent } from './deliver-processes.ts'
import { eventNames, one } from './project-audiences.ts'
import { emptyBare, upsertBare } from './project-bare.ts'
import { callOf, partitions } from './project-scene.ts'

export type Order =
  | { readonly type: 'fill'; readonly events: number; readonly users: number; readonly now: number }
  | { readonly type: 'bare'; readonly users: number; readonly width: number }
  | { readonly type: 'product' }

export type Spent = {
  readonly events: number
  readonly seconds: number
  readonly cpuUs: number
  readonly rssBytes: number
  /** Bytes of a user's state, of the product. */
  readonly width: number
}

const url = process.env['BENCH_DATABASE_URL'] ?? ''
const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
const clock = () => new Date()
const { call: codec } = await openCodecs({})
const source = postgresSource({ pool, partitions, clock })
let rebuilds = 0
// As the product's process does.
watchHeap()

const fill = async (order: Extract<Order, { type: 'fill' }>): Promise<void> => {
  const appender = postgresAppender({ pool, partitions, clock })
  const names = eventNames(one)
  for (let events = 0; events < order.events; events += projectLimits.batchCallsMax) {
    const count = Math.min(projectLimits.batchCallsMax, order.events - events)
    const calls = Array.from({ length: count }, (_, at) =>
      callOf(events + at, { ...order, names, codec }),
    )
    await appender.append('calls', calls)
  }
  await appender.close()
}

const ends = async (): Promise<readonly (Place & { readonly next: bigint })[]> =>
  (await source.bounds('calls')).map(({ end }, partition) => ({
    topic: 'calls',
    partition,
    next: end,
  }))

/** Reads all there is, and upserts a row for each entry. */
const runBare = async ({ users, width }: Extract<Order, { type: 'bare' }>): Promise<number> => {
  await emptyBare(pool)
  const began = performance.now()
  let rows = 0
  for (const { topic, partition, next } of await ends())
    for await (const batch of source.read({ topic, partition, from: 0n, until: next }))
      for (let at = 0; at < batch.entries.length; at += projectLimits.batchCallsMax) {
        const part = batch.entries.slice(at, at + projectLimits.batchCallsMax)
        await upsertBare(pool, { first: rows, count: part.length, users, width })
        rows += part.length
      }
  return (performance.now() - began) / 1_000
}

const deps: RebuildDeps = {
  pool,
  openPool: (settings, connectionsMax) =>
    openPool({ url, connectionsMax, name: 'bench', settings }),
  history: source,
  codecs: { call: codec },
  clock,
  logger: pino({ level: process.env['BENCH_LOG'] ?? 'silent' }),
  limits: rebuildLimits,
  meter: openRebuildMeter(),
}

const runProduct = async (): Promise<{ readonly seconds: number; readonly width: number }> => {
  const id = ++rebuilds
  const flags = { verifyOnly: true, fromKept: false, acceptsDifferences: false }
  await begin(deps, { id, state: 'requested', ...flags })
  const own = deps.openPool(
    { search_path: `${schemaOf(id)},public`, synchronous_commit: 'off' },
    rebuildLimits.connectionsMax,
  )
  const began = performance.now()
  const fold = await openFold(deps, own)
  const signal = new AbortController().signal
  await fold.foldUntil(vectorOf(await ends()), { signal, pace: async () => undefined })
  const seconds = (performance.now() - began) / 1_000
  const { rows } = await own.query<{ width: number }>(
    'select avg(octet_length(st))::float8 as width from ustate',
  )
  await own.close()
  await pool.query(`drop schema ${schemaOf(id)} cascade`)
  return { seconds, width: rows[0]?.width ?? 0 }
}

answerParent<Order>(async (order): Promise<Spent> => {
  const before = process.cpuUsage()
  let seconds = 0
  let width = 0
  const events = (await source.bounds('calls')).reduce(
    (sum, { start, end }) => sum + Number(end - start),
    0,
  )
  if (order.type === 'fill') await fill(order)
  else if (order.type === 'bare') seconds = await runBare(order)
  else ({ seconds, width } = await runProduct())
  const { user, system } = process.cpuUsage(before)
  const rssBytes = process.memoryUsage.rss()
  return { events, seconds, cpuUs: user + system, rssBytes, width }
})
process.send?.({})
