// One contender of the project bench in a process of its own: `bare` upserts rows, `product` projects calls.
import pino from 'pino'
import { openCodecs } from '../src/log/avro.ts'
import type { Source } from '../src/log/log.ts'
import { memoryLog } from '../src/log/memory.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { projectLimits, startProject } from '../src/project/project.ts'
import { upsertFor } from './project-bare.ts'
import { audiences, callOf, liveOf, partitions } from './project-scene.ts'

export type Order =
  | {
      readonly type: 'bare'
      readonly seconds: number
      readonly users: number
      readonly width: number
    }
  /** Makes calls and puts them into the log, where they wait. */
  | { readonly type: 'fill'; readonly events: number; readonly users: number; readonly now: number }
  | { readonly type: 'start' }
  | { readonly type: 'stop' }

export type Usage = {
  readonly cpu: NodeJS.CpuUsage
  readonly rssBytes: number
  /** Of `bare`: rows written in so many seconds. */
  readonly rows?: number
  readonly seconds?: number
}

const openProduct = async (pool: Pool) => {
  // Far from the clock of the machine: calls are as of the instant their users were loaded.
  let now = 0
  const log = memoryLog({ partitions, clock: () => new Date(now) })
  const { call: codec } = await openCodecs({})
  const gate = openGate()
  const projector = startProject({
    source: gated(log.source(), gate.passed),
    codecs: { call: codec },
    pool,
    live: liveOf(audiences),
    clock: () => new Date(now),
    logger: pino({ level: process.env['BENCH_LOG'] ?? 'silent' }),
  })
  projector.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  const appender = log.appender()
  let number = 0
  return {
    fill: async (order: Extract<Order, { type: 'fill' }>) => {
      now = order.now
      gate.shut()
      // What the run before has read is nothing to this one's memory.
      for (const [partition, { end }] of (await log.source().bounds('calls')).entries())
        log.truncate('calls', partition, end)
      for (let left = order.events; left > 0; left -= projectLimits.batchCallsMax) {
        const count = Math.min(left, projectLimits.batchCallsMax)
        const calls = Array.from({ length: count }, () => callOf(number++, { ...order, codec }))
        await appender.append('calls', calls)
      }
      globalThis.gc?.()
    },
    start: () => gate.open(),
    stop: () => projector.stop(),
  }
}

const openGate = () => {
  let change = Promise.withResolvers<void>()
  return {
    passed: () => change.promise,
    open: () => change.resolve(),
    shut: () => {
      change = Promise.withResolvers()
    },
  }
}

/** Gives nothing to read until the clock runs. */
const gated = (source: Source, passed: () => Promise<void>): Source => ({
  ...source,
  join: (group, gained) =>
    source.join(group, async (lease) => {
      const reader = await gained(lease)
      return {
        from: reader.from,
        handle: async (batch) => {
          await passed()
          await reader.handle(batch)
        },
      }
    }),
})

const pool = openPool({
  url: process.env['BENCH_DATABASE_URL'] ?? '',
  connectionsMax: 8,
  name: 'bench',
})
const product = process.argv[2] === 'product' ? await openProduct(pool) : null

const obey = async (order: Order): Promise<Usage> => {
  let done: { rows: number; seconds: number } | null = null
  if (order.type === 'bare') done = await upsertFor(pool, order)
  else if (order.type === 'fill') await product?.fill(order)
  else if (order.type === 'start') product?.start()
  else await product?.stop()
  return { cpu: process.cpuUsage(), rssBytes: process.memoryUsage.rss(), ...done }
}

process.on('disconnect', () => process.exit(0))
process.on('message', (order: Order) => {
  obey(order).then(
    (usage) => process.send?.(usage),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.send?.({})
