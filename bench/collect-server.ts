// One contender of the collect bench in a process of its own: `bare` or `product`.
import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import pino from 'pino'
import { startCollect } from '../src/collect/collect.ts'
import { collectLimits } from '../src/collect/limits.ts'
import type { Live } from '../src/domain/configuration.ts'
import { type JsonObject, logKey, type Message } from '../src/domain/message.ts'
import { openCodecs } from '../src/log/avro.ts'
import type { Appender, Codec } from '../src/log/log.ts'
import { openMetrics } from '../src/metrics.ts'
import { openPipeline } from '../src/pipeline/pipeline.ts'
import { aConfiguration, aSource } from '../test/support/configuration.ts'
import { bareMessage } from './collect-calls.ts'
import { openBenchLog } from './collect-log.ts'

type Deps = { readonly appender: Appender; readonly codec: Codec<Message> }

/** As it would be shipped: one parser for plain and gzip, within the same bound, and nothing judged. */
const startBare = async ({ appender, codec }: Deps): Promise<string> => {
  const app = Fastify({ logger: false, bodyLimit: bodyBytesMax })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      done(null, JSON.parse(textOf(body as Buffer, request.headers['content-encoding'])))
    } catch (error) {
      done(error as Error)
    }
  })
  const append = async (calls: readonly JsonObject[], sentAt: string) => {
    const receivedAt = Date.now()
    const entries = calls.map((call) => {
      const message = bareMessage(call, sentAt, receivedAt)
      return { key: logKey(message), value: codec.encode(message) }
    })
    await appender.append('calls', entries)
    return { success: true }
  }
  app.post('/v1/batch', (request) => {
    const { batch, sentAt } = request.body as { batch: JsonObject[]; sentAt: string }
    return append(batch, sentAt)
  })
  app.post('/v1/track', (request) => {
    const call = request.body as JsonObject & { sentAt: string }
    return append([call], call.sentAt)
  })
  return app.listen({ host: '127.0.0.1', port: 0 })
}

const { bodyBytesMax } = collectLimits

const textOf = (body: Buffer, encoding: string | undefined) =>
  (encoding === 'gzip' ? gunzipSync(body, { maxOutputLength: bodyBytesMax }) : body).toString()

const startProduct = async ({ appender, codec }: Deps): Promise<string> => {
  const clock = () => new Date()
  const logger = pino({ level: 'info' })
  const metrics = openMetrics()
  const collect = await startCollect({
    appender,
    codecs: { call: codec },
    live: oneSource(),
    clock,
    logger,
    host: '127.0.0.1',
    port: 0,
    count: metrics.count,
    pipeline: openPipeline({ sql: pool, clock, logger, tell: metrics.countCalls }),
  })
  return collect.url
}

const oneSource = (): Live => {
  const configuration = aConfiguration({ sources: [aSource({ writeKey: 'wk_bench' })] })
  return { now: () => configuration, onChange: () => () => undefined }
}

const { appender, pool } = await openBenchLog()
const { call: codec } = await openCodecs({})
const start = process.argv[2] === 'bare' ? startBare : startProduct
process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  process.send?.({ cpu: process.cpuUsage(), rssBytes: process.memoryUsage.rss() })
})
process.send?.({ url: await start({ appender, codec }) })
