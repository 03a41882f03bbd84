// Two collect stages on one recording log in a process of their own, so that its memory can be measured: forked by hostile.ts.
import pino from 'pino'
import { startCollect } from '../../src/collect/collect.ts'
import { type CollectLimits, collectLimits } from '../../src/collect/limits.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Appender } from '../../src/log/log.ts'
import { aLive, aSource } from './configuration.ts'
import { noon } from './receipt.ts'

/** To the parent: first `urls`, then an account for each message it sends. */
export type Urls = { readonly patient: string; readonly hasty: string }

export type Account = {
  /** The message ids that the log took since the last account, in order. */
  readonly appended: readonly string[]
  readonly rssBytes: number
  /** The highest seen since the last account. */
  readonly peakBytes: number
}

const sampleEveryMs = 20
const hastyLimits = { requestMsMax: 800 }

const { call: codec } = await openCodecs({})
let appended: string[] = []
let peakBytes = 0
const sample = () => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
}
setInterval(sample, sampleEveryMs).unref()

const appender: Appender = {
  append: async (_topic, entries) => {
    const messages = await codec.decode(entries.map(({ value }) => value))
    for (const { messageId } of messages) appended.push(messageId)
    return entries.map((_, at) => ({ partition: 0, offset: BigInt(at) }))
  },
  close: async () => undefined,
}

const start = async (limits: Partial<CollectLimits>) => {
  const collect = await startCollect({
    appender,
    codecs: { call: codec },
    live: aLive({
      sources: [
        aSource(),
        aSource({ id: 2, name: 'off', writeKey: 'wk_off', secretKeyHash: 'off', enabled: false }),
      ],
    }),
    clock: () => new Date(noon),
    logger: pino({ level: 'info' }, { write: () => undefined }),
    host: '127.0.0.1',
    port: 0,
    limits,
  })
  return collect.url
}

process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  sample()
  const account: Account = { appended, rssBytes: process.memoryUsage.rss(), peakBytes }
  appended = []
  peakBytes = 0
  process.send?.(account)
})
const urls: Urls = {
  patient: await start({}),
  hasty: await start({ ...collectLimits, ...hastyLimits }),
}
process.send?.(urls)
