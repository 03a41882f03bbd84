// Millrace as a process of its own whose clock its parent drives: forked by process.ts, never by hand.
import { flushCompileCache } from 'node:module'
import { type Environment, parseConfig } from '../../src/config.ts'
import { watchHeap } from '../../src/heap.ts'
import { openLogger } from '../../src/logger.ts'
import { startMillrace } from '../../src/serve.ts'

/** Without a time the clock runs until it is set. */
export type ChildStart = { readonly env: Environment; readonly time: number | null }

/** From the parent. */
export type Order = { readonly type: 'time'; readonly id: number; readonly at: number }

/** To the parent. */
export type News =
  | {
      readonly type: 'started'
      readonly collectUrl: string | null
      readonly adminUrl: string | null
    }
  | { readonly type: 'time'; readonly id: number }
  | { readonly type: 'failed'; readonly message: string }

const start = JSON.parse(process.argv[2] ?? '') as ChildStart
const tell = (news: News) => new Promise((resolve) => process.send?.(news, resolve))

let now = start.time
process.on('message', (order: Order) => {
  now = order.at
  void tell({ type: 'time', id: order.id })
})
// A parent that is gone cannot stop us any more; leaving takes the embedded server along.
process.on('disconnect', () => process.exit(1))

watchHeap()
try {
  const config = parseConfig(start.env)
  const logger = openLogger({ level: config.logLevel, pretty: false })
  const millrace = await startMillrace({ config, logger, clock: () => new Date(now ?? Date.now()) })
  const { collectUrl, adminUrl } = millrace
  process.on('SIGTERM', () => millrace.stop().catch(() => undefined))
  // One that is killed leaves nothing to the next.
  flushCompileCache()
  await tell({ type: 'started', collectUrl, adminUrl })
  await millrace.done
  process.exit(0)
} catch (error) {
  console.error(error)
  await tell({ type: 'failed', message: (error as Error).message })
  process.exit(1)
}
