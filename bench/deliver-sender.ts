// One contender of the deliver bench in a process of its own: `bare` posts in a loop, `product` delivers.
import pino from 'pino'
import { Pool } from 'undici'
import { startDeliver } from '../src/deliver/deliver.ts'
import { render } from '../src/domain/payload.ts'
import { sign } from '../src/domain/signature.ts'
import { watchHeap } from '../src/heap.ts'
import { openPost } from '../src/http/open-post.ts'
import { openCodecs } from '../src/log/avro.ts'
import { openPool } from '../src/postgres/pool.ts'
import { callsFrom, liveFor, secret } from './deliver-calls.ts'
import { openDeliverLog } from './deliver-log.ts'

type Order =
  | { readonly type: 'start'; readonly urls: readonly string[]; readonly concurrency: number }
  | { readonly type: 'usage' }
  | { readonly type: 'stop' }

type Stop = () => Promise<void>

/** The same bytes, rendered beforehand; signed as they go, as any sender must. */
const startBare = (urls: readonly string[], concurrency: number): Stop => {
  const bodies = callsFrom(0, 1_000, 1).map((call) => render(call, JSON.parse(String(call.body))))
  const pools = urls.map((url) => {
    const connections = Math.ceil(concurrency / urls.length)
    return new Pool(new URL(url).origin, { connections, pipelining: 1, allowH2: false })
  })
  let stopping = false
  let next = 0
  const loop = async (pool: Pool) => {
    while (!stopping) {
      const body = bodies[next++ % bodies.length] as Buffer
      const { body: answer } = await pool.request({
        path: '/hook',
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'Millrace/0.0.0',
          'X-Signature': sign(secret, body),
        },
        body,
      })
      await answer.dump()
    }
  }
  const loops = Array.from({ length: concurrency }, (_, at) =>
    loop(pools[at % pools.length] as Pool),
  )
  return async () => {
    stopping = true
    await Promise.all(loops)
    await Promise.all(pools.map((pool) => pool.close()))
  }
}

const startProduct = async (urls: readonly string[], concurrency: number): Promise<Stop> => {
  const { url, source } = await openDeliverLog()
  const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
  const post = openPost({ addresses: { allowPrivate: true, allowed: [] } })
  const running = startDeliver({
    source,
    codecs: await openCodecs({}),
    pool,
    live: liveFor(urls),
    clock: () => new Date(),
    post,
    logger: pino({ level: 'info' }),
    limits: {
      // A tenth of all rounds is kept for retries, which there are none of here.
      roundsMax: Math.ceil(concurrency / 0.9),
      urlConcurrencyMax: concurrency,
      roundsPerLaneMax:
        urls.length === 1 ? concurrency : Math.ceil((2 * concurrency) / urls.length),
    },
  })
  running.done.catch((error) => {
    console.error(error)
    process.exit(1)
  })
  return async () => {
    await running.stop()
    await post.close()
    await source.close()
    await pool.close()
  }
}

// As the product's process does.
if (process.argv[2] === 'product') watchHeap()

let stop: Stop = async () => undefined

const obey = async (order: Order) => {
  if (order.type === 'stop') await stop()
  else if (order.type === 'start' && process.argv[2] === 'bare')
    stop = startBare(order.urls, order.concurrency)
  else if (order.type === 'start') stop = await startProduct(order.urls, order.concurrency)
  // The most memory since the process began.
  const rssBytes = process.resourceUsage().maxRSS * 1_024
  process.send?.({ cpu: process.cpuUsage(), rssBytes })
}

process.on('disconnect', () => process.exit(0))
process.on('message', (order: Order) => {
  obey(order).catch((error) => process.send?.({ error: String(error?.stack ?? error) }))
})
process.send?.({ ready: true })
