// A running collect stage on a log that a test can read, hold back and break.
import pino from 'pino'
import { afterEach } from 'vitest'
import { type Collect, type CollectDeps, startCollect } from '../../src/collect/collect.ts'
import type { CountName } from '../../src/collect/count.ts'
import { type CollectLimits, collectLimits } from '../../src/collect/limits.ts'
import type { Message } from '../../src/domain/message.ts'
import { Fault } from '../../src/fault.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Appender, Entry, Topic } from '../../src/log/log.ts'
import { memoryLog } from '../../src/log/memory.ts'
import { aLive, aSource } from './configuration.ts'
import { noon } from './receipt.ts'

type Appended = { readonly topic: Topic; readonly key: string; readonly message: Message }

export type TestAppender = Appender & {
  readonly appended: Appended[]
  /** What the next appends do; `hold` waits for `release`. */
  behave(behaviour: 'take' | 'hold' | 'fail'): void
  release(): void
  waiting(): number
}

const { call: codec } = await openCodecs({})

const openAppender = (): TestAppender => {
  const inner = memoryLog({ clock: () => new Date(noon) }).appender()
  const appended: Appended[] = []
  let behaviour: 'take' | 'hold' | 'fail' = 'take'
  let held: (() => void)[] = []
  return {
    appended,
    behave: (next) => {
      behaviour = next
    },
    release: () => {
      for (const resolve of held) resolve()
      held = []
    },
    waiting: () => held.length,
    append: async (topic, entries) => {
      if (behaviour === 'fail') throw new Fault('log_unavailable', 'broken by the test')
      if (behaviour === 'hold') await new Promise<void>((resolve) => held.push(resolve))
      const ats = await inner.append(topic, entries)
      const messages = await codec.decode(entries.map(({ value }) => value))
      for (const [at, message] of messages.entries())
        appended.push({ topic, key: (entries[at] as Entry).key, message })
      return ats
    },
    close: inner.close,
  }
}

export type Collecting = Collect & {
  readonly log: TestAppender
  readonly counted: ReadonlyMap<string, number>
  readonly lines: string[]
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>
}

export type Reply = { readonly status: number; readonly headers: Headers; readonly json: unknown }

const started: Collect[] = []

afterEach(async () => {
  for (const collect of started.splice(0)) await collect.stop()
})

export const basic = (key: string) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`

/** A machine that is busy with other tests makes the loop late, too: only who asks for it is refused for that. */
const unhurried = (limits: Partial<CollectLimits> = {}): Partial<CollectLimits> =>
  (limits.loopDelayMsMax ?? collectLimits.loopDelayMsMax) === collectLimits.loopDelayMsMax
    ? { ...limits, loopDelayMsMax: 60_000 }
    : limits

export const startCollecting = async (over: Partial<CollectDeps> = {}): Promise<Collecting> => {
  const log = openAppender()
  const counted = new Map<string, number>()
  const lines: string[] = []
  const sources = [
    aSource(),
    aSource({ id: 2, name: 'off', writeKey: 'wk_off', enabled: false }),
    aSource({ id: 3, name: 'site', writeKey: 'wk_site', class: 'web' }),
  ]
  const collect = await startCollect({
    appender: log,
    codecs: { call: codec },
    live: aLive({ sources }),
    clock: () => new Date(noon),
    logger: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
    host: '127.0.0.1',
    port: 0,
    count: (name: CountName, labels, amount) => {
      const key = [name, ...Object.values(labels)].join(' ')
      counted.set(key, (counted.get(key) ?? 0) + amount)
    },
    pipeline: {
      count: ({ sourceId, step, type, reason }, amount) => {
        const key = `calls.${step} ${sourceId} ${reason ?? type}`
        counted.set(key, (counted.get(key) ?? 0) + amount)
      },
    },
    ...over,
    limits: unhurried(over.limits),
  })
  started.push(collect)
  return { ...collect, log, counted, lines, post: (...args) => post(collect.url, ...args) }
}

const post = async (url: string, ...args: Parameters<Collecting['post']>): Promise<Reply> => {
  const [path, body, headers = { authorization: basic('wk_web') }] = args
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    redirect: 'error',
    headers,
    body:
      typeof body === 'string'
        ? body
        : body instanceof Uint8Array
          ? Buffer.from(body)
          : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, json: await response.json() }
}
