// One contender of the collect bench in a process of its own: `bare` or `product`.
import Fastify from 'fastify'
import pino from 'pino'
import { startCollect } from '../src/collect/collect.ts'
import type { Configuration, Live, Source } from '../src/domain/configuration.ts'
import { type JsonObject, logKey, type Message } from '../src/domain/message.ts'
import { openCodecs } from '../src/log/avro.ts'
import type { Appender, Codec } from '../src/log/log.ts'
import { openMetrics } from '../src/metrics.ts'
import { bareMessage } from './collect-calls.ts'
import { openBenchLog } from './collect-log.ts'

type Deps = { readonly appender: Appender; readonly codec: Codec<Message> }

const startBare = async ({ appender, codec }: Deps): Promise<string> => {
  const app = Fastify({ logger: false })
  app.post('/v1/batch', async (request) => {
    const { batch, sentAt } = request.body as { batch: JsonObject[]; sentAt: string }
    const receivedAt = Date.now()
    const entries = batch.map((call) => {
      const message = bareMessage(call, sentAt, receivedAt)
      return { key: logKey(message), value: codec.encode(message) }
    })
    await appender.append('calls', entries)
    return { success: true }
  })
  return app.listen({ host: '127.0.0.1', port: 0 })
}

const startProduct = async ({ appender, codec }: Deps): Promise<string> => {
  const collect = await startCollect({
    appender,
    codecs: { call: codec },
    live: oneSource(),
    clock: () => new Date(),
    logger: pino({ level: 'info' }),
    host: '127.0.0.1',
    port: 0,
    count: openMetrics().count,
  })
  return collect.url
}

const oneSource = (): Live => {
  const source: Source = {
    id: 1,
    workspaceId: 1,
    name: 'bench',
    class: 'server',
    writeKey: 'wk_bench',
    enabled: true,
  }
  const configuration: Configuration = {
    version: 1n,
    workspaces: new Map([[1, { id: 1, name: 'bench', regionalAccess: false }]]),
    sources: new Map([[1, source]]),
    sourceByWriteKey: new Map([[source.writeKey, source]]),
    destinations: new Map(),
    destinationsBySource: new Map(),
    audiences: new Map(),
  }
  return { now: () => configuration, onChange: () => () => undefined }
}

const { appender } = await openBenchLog()
const { call: codec } = await openCodecs({})
const start = process.argv[2] === 'bare' ? startBare : startProduct
process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  process.send?.({ cpu: process.cpuUsage(), rssBytes: process.memoryUsage.rss() })
})
process.send?.({ url: await start({ appender, codec }) })
