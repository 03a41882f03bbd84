// The deliver stage on a memory log, a real database and real receivers, with a clock the test turns.
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { type DeliverDeps, startDeliver } from '../../src/deliver/deliver.ts'
import type { DeliverLimits } from '../../src/deliver/limits.ts'
import type { UrlEvent } from '../../src/deliver/url-change.ts'
import {
  digestOf,
  logKey,
  type Message,
  type Outbound,
  outboundKey,
} from '../../src/domain/message.ts'
import type { Pipeline } from '../../src/domain/pipeline.ts'
import { openPost, postLimits } from '../../src/http/open-post.ts'
import type { Post } from '../../src/http/post.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Topic } from '../../src/log/log.ts'
import { memoryLog } from '../../src/log/memory.ts'
import { partitionsOf } from '../../src/log/partitions.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { aLive, type TestLive } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const codecs = await openCodecs({})

export type Life = {
  readonly running: Running
  /** Nothing of it reaches the world any more, and nobody was told. */
  crash(): void
  /** Called with every request before it is sent; a rejection never comes back, like a crash. */
  beforePost: (url: string) => void
  /** Called with every answer before deliver sees it. */
  afterPost: (url: string) => void
  /** Called before a transaction commits nothing or all of it. */
  beforeTransaction: () => void
  afterTransaction: () => void
}

type Options = {
  readonly limits?: Partial<DeliverLimits>
  readonly partitions?: number
  readonly pipeline?: Pipeline
  /** The jitter of retries; in the middle when absent. */
  readonly random?: () => number
  /** Another way to the same database. */
  readonly pool?: Pool
}

/** Of the tables parked, dead and attempt, as far as tests look. */
export type Row = {
  readonly reason: string
  readonly attempts: number
  readonly body: Buffer | null
  readonly body_id: bigint | null
  readonly lease_owner: string | null
  readonly next_at: Date | null
}

export const useRig = async () => {
  const database = await cloneDatabase()
  const receivers: Receiver[] = []
  const lives: Life[] = []
  const lines: Record<string, unknown>[] = []
  const events: UrlEvent[] = []
  const logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const posts: { close(): Promise<void> }[] = []
  beforeEach(async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'migration'",
    )
    await database.pool.query(`truncate ${rows.map(({ name }) => name).join(', ')}`)
    lines.length = 0
    events.length = 0
  })
  const tidy = async () => {
    for (const life of lives.splice(0)) await life.running.stop()
    for (const post of posts.splice(0)) await post.close()
    for (const receiver of receivers.splice(0)) await receiver.close()
  }
  afterEach(tidy)
  afterAll(tidy)
  const receiver = async (secret: string | null = 'secret', now?: () => number) => {
    const opened = await openReceiver({ secret, ...(now ? { now } : {}) })
    receivers.push(opened)
    return opened
  }
  const open = (live: TestLive, options: Options = {}) => {
    const count = options.partitions ?? 2
    let now = Date.UTC(2024, 0, 1)
    const clock = () => new Date(now)
    const partitions = partitionsOf(count)
    const log = memoryLog({ partitions, clock })
    const appender = log.appender()
    let sent = 0
    const aCall = (over: Partial<Message> = {}, body: object = {}): Message => {
      sent += 1
      const message = {
        messageId: `m${sent}`,
        type: 'track' as const,
        workspaceId: 1,
        sourceId: 1,
        userId: 'u1',
        anonymousId: null,
        previousId: null,
        groupId: null,
        event: 'Order Completed',
        timestamp: now,
        originalTimestamp: now,
        sentAt: null,
        receivedAt: now,
        body: Buffer.from(JSON.stringify({ properties: { n: sent }, ...body })),
        filtered: null,
        ...over,
      }
      return { ...message, digest: over.digest ?? digestOf(message) }
    }
    const start = (
      limits: Partial<DeliverLimits> = {},
      timeoutMs = 5_000,
      over: Partial<DeliverDeps> = {},
    ): Life => {
      const source = log.source()
      const post = openPost({
        addresses: { allowPrivate: true, allowed: [] },
        limits: { answerMs: timeoutMs, ...patience(timeoutMs) },
      })
      posts.push(post)
      const state = { dead: false }
      const life: Life = {
        running: null as unknown as Running,
        crash: () => {
          // Hooks may find it out twice: another life must not be taken for this one.
          if (state.dead) return
          state.dead = true
          source.vanish()
          lives.splice(lives.indexOf(life), 1)
        },
        beforePost: () => undefined,
        afterPost: () => undefined,
        beforeTransaction: () => undefined,
        afterTransaction: () => undefined,
      }
      const running = startDeliver({
        source,
        codecs,
        pool: mortal(options.pool ?? database.pool, state, life),
        live,
        clock,
        post: mortalPost(post, state, life),
        probe: post.probe,
        onUrlChange: (event) => events.push(event),
        logger,
        limits: { ...options.limits, ...limits },
        random: options.random ?? (() => 0.5),
        ...(options.pipeline ? { pipeline: options.pipeline } : {}),
        ...over,
      })
      Object.assign(life, { running })
      lives.push(life)
      return life
    }
    return {
      log,
      now: () => now,
      setNow: (ms: number) => {
        now = ms
      },
      aCall,
      append: (calls: readonly Message[], topic: Topic = 'calls') =>
        appender.append(
          topic,
          calls.map((call) => ({ key: logKey(call), value: codecs.call.encode(call) })),
        ),
      appendOutbound: (records: readonly Outbound[]) =>
        appender.append(
          'outbound',
          records.map((record) => ({
            key: outboundKey(record),
            value: codecs.outbound.encode(record),
          })),
        ),
      start,
    }
  }
  const rowsOf = async (table: 'parked' | 'dead' | 'attempt') =>
    (await database.pool.query<Row>(`select * from ${table} order by log_offset`)).rows
  /** Every position stands at the end of its partition, with nothing owed. */
  const drained = (life: { readonly log: ReturnType<typeof memoryLog> }) =>
    until(async () => {
      const { rows } = await database.pool.query<{ topic: Topic; partition: number; next: bigint }>(
        "select topic, partition, next from position where reader = 'deliver'",
      )
      const source = life.log.source()
      for (const topic of ['calls', 'calls.import', 'outbound', 'outbound.replay'] as const)
        for (const [partition, { end }] of (await source.bounds(topic)).entries()) {
          const next = rows.find((row) => row.topic === topic && row.partition === partition)?.next
          if ((next ?? 0n) !== end) return false
        }
      return true
    }, 'every position reaches the end of the log')
  return { database, receiver, open, rowsOf, drained, lines, events, live: aLive }
}

/** Who may take longer than the specification's five seconds to answer may also take longer to connect. */
const patience = (timeoutMs: number) => {
  const longer = Math.max(timeoutMs - postLimits.answerMs, 0)
  const { connectMs, totalMs } = postLimits
  return { connectMs: connectMs + longer, totalMs: totalMs + 2 * longer }
}

const never = new Promise<never>(() => undefined)

const mortal = (pool: Pool, state: { dead: boolean }, life: Life): Pool => {
  const alive = async <R>(work: () => Promise<R>): Promise<R> => {
    if (state.dead) return never
    const result = await work()
    return state.dead ? never : result
  }
  return {
    ...pool,
    query: (text, values) => alive(() => pool.query(text, values)),
    connect: (use) => alive(() => pool.connect(use)),
    transaction: (work, options) =>
      alive(async () => {
        life.beforeTransaction()
        if (state.dead) return never
        const result = await pool.transaction(work, options)
        life.afterTransaction()
        return result
      }),
  }
}

const mortalPost =
  (post: Post, state: { dead: boolean }, life: Life): Post =>
  async (request) => {
    life.beforePost(request.url)
    if (state.dead) return never
    const result = await post(request)
    life.afterPost(request.url)
    return state.dead ? never : result
  }

export const anOutbound = (over: Partial<Outbound> = {}): Outbound => {
  const userId = over.userId ?? 'u1'
  const json = {
    version: 1,
    type: 'identify',
    userId,
    traits: { vip: true },
    timestamp: '2024-01-01T00:00:00.000Z',
  }
  return {
    messageId: `o${over.seq ?? 1}`,
    origin: 'audience',
    type: 'identify',
    workspaceId: 1,
    destinationId: 1,
    userId,
    timestamp: Date.UTC(2024, 0, 1),
    receivedAt: Date.UTC(2024, 0, 1),
    shard: 0,
    seq: 1,
    body: Buffer.from(JSON.stringify(json)),
    ...over,
  }
}
