// The sender of the benches of delivery under trouble, in a process of its own: delivers as it comes, without
// a limit of its own for the bench.
import pino from 'pino'
import { startDeliver } from '../src/deliver/deliver.ts'
import { watchHeap } from '../src/heap.ts'
import { openPost } from '../src/http/open-post.ts'
import { liveFor } from './deliver-calls.ts'
import { answerParent } from './deliver-processes.ts'
import { openLogAt } from './deliver-stand.ts'

export type Order =
  | {
      readonly type: 'start'
      readonly url: string
      readonly prefix: string
      readonly urls: readonly string[]
    }
  | { readonly type: 'usage' }
  | { readonly type: 'stop' }

export type Usage = {
  readonly cpuUs: number
  readonly rssBytes: number
  /** The most since the process began. */
  readonly rssMostBytes: number
}

type Stop = () => Promise<void>

const logger = pino({ level: process.env['BENCH_LOG'] ?? 'fatal' })

const start = async (order: Extract<Order, { type: 'start' }>): Promise<Stop> => {
  const log = await openLogAt(order)
  const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
  const running = startDeliver({
    source: log.source,
    codecs: log.codecs,
    pool: log.pool,
    live: liveFor(order.urls),
    clock: () => new Date(),
    post,
    logger,
  })
  running.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  return async () => {
    await running.stop()
    await post.close()
    await log.close()
  }
}

let stop: Stop = async () => undefined

// As the product's process does.
watchHeap()
answerParent<Order>(async (order) => {
  if (order.type === 'start') stop = await start(order)
  else if (order.type === 'stop') await stop()
  const { user, system } = process.cpuUsage()
  const usage: Usage = {
    cpuUs: user + system,
    rssBytes: process.memoryUsage.rss(),
    rssMostBytes: process.resourceUsage().maxRSS * 1_024,
  }
  return usage
})
process.send?.({ ready: true })
