// One contender of the project benches in a process of its own: `bare` upserts rows, `product` projects calls.
import pino from 'pino'
import { watchHeap } from '../src/heap.ts'
import { openCodecs } from '../src/log/avro.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { projectLimits, startProject } from '../src/project/project.ts'
import { answerParent } from './deliver-processes.ts'
import { audiencesOf, eventNames, type Wanted } from './project-audiences.ts'
import { upsertFor } from './project-bare.ts'
import { openFileLog } from './project-log.ts'
import { callOf, liveOf, partitions } from './project-scene.ts'

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
  readonly cpuUs: number
  readonly rssBytes: number
  /** Of `bare`: rows written in so many seconds. */
  readonly rows?: number
  readonly seconds?: number
}

export type Contender = {
  readonly kind: 'bare' | 'product'
  readonly wanted: Wanted
  /** What the caches of users and of identities take each, where it is not the usual. */
  readonly cacheBytesMax?: number
}

const openProduct = async (pool: Pool, { wanted, cacheBytesMax: bytesMax }: Contender) => {
  // Far from the clock of the machine: calls are as of the instant their users were loaded.
  let now = 0
  const log = await openFileLog(partitions)
  const { call: codec } = await openCodecs({})
  const names = eventNames(wanted)
  const projector = startProject({
    source: log.source,
    codecs: { call: codec },
    pool,
    live: liveOf(audiencesOf(wanted)),
    clock: () => new Date(now),
    logger: pino({ level: process.env['BENCH_LOG'] ?? 'silent' }),
    limits:
      bytesMax === undefined
        ? {}
        : { userCacheBytesMax: bytesMax, identityCacheBytesMax: bytesMax / 4 },
  })
  projector.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  let number = 0
  return {
    fill: async (order: Extract<Order, { type: 'fill' }>) => {
      now = order.now
      for (let left = order.events; left > 0; left -= projectLimits.batchCallsMax) {
        const count = Math.min(left, projectLimits.batchCallsMax)
        const walk = { ...order, names, codec }
        const calls = Array.from({ length: count }, () => callOf(number++, walk))
        await log.append('calls', calls)
      }
      globalThis.gc?.()
    },
    start: () => log.open(),
    stop: () => projector.stop(),
  }
}

const pool = openPool({
  url: process.env['BENCH_DATABASE_URL'] ?? '',
  connectionsMax: 8,
  name: 'bench',
})
const contender = JSON.parse(process.argv[2] ?? '') as Contender
// As the product's process does.
if (contender.kind === 'product') watchHeap()
const product = contender.kind === 'product' ? await openProduct(pool, contender) : null

const obey = async (order: Order): Promise<Usage> => {
  let done: { rows: number; seconds: number } | null = null
  if (order.type === 'bare') done = await upsertFor(pool, order)
  else if (order.type === 'fill') await product?.fill(order)
  else if (order.type === 'start') product?.start()
  else await product?.stop()
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss(), ...done }
}

answerParent<Order>(obey)
process.send?.({})
