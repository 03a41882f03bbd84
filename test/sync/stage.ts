// A sync stage on a real Postgres and a log in memory, with memberships written by hand.
import pino from 'pino'
import { vi } from 'vitest'
import type { Outbound } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Topic } from '../../src/log/log.ts'
import { type MemoryLog, memoryLog } from '../../src/log/memory.ts'
import { partitionsOf } from '../../src/log/partitions.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { startSync } from '../../src/sync/sync.ts'
import { aDestination, aLive, anAudience, type TestLive } from '../support/configuration.ts'

export const partitions = 4
export const start = new Date('2024-03-01T00:00:00.000Z')

const codecs = await openCodecs({})

export type World = {
  readonly pool: Pool
  readonly log: MemoryLog
  readonly live: TestLive
  readonly clock: () => Date
  advance(ms: number): void
  /** Starts one more process of the stage; `over` replaces what it sees of the world. */
  start(over?: Partial<Parameters<typeof startSync>[0]>): Running
  stopAll(): Promise<void>
  append(topic: Topic, keys: readonly string[]): Promise<void>
  /** Decoded, by partition and offset. */
  outbound(): Promise<readonly Outbound[]>
}

export const openWorld = async (pool: Pool): Promise<World> => {
  await pool.query(`truncate membership, ustate, audience_state, position, sync_run, sync_chunk,
    sync_schedule, sync_destination, sync_leaver, retraction, audience_size, outbox restart identity`)
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set epoch = 0, bounds = null')
  const live = aLive({ destinations: [aDestination()], audiences: [anAudience()] })
  const running = new Set<Running>()
  let now = start.getTime()
  const clock = () => new Date(now)
  const counts = partitionsOf(partitions)
  const log = memoryLog({ partitions: counts, clock })
  const [source, appender] = [log.source(), log.appender()]
  const logger = pino({ level: process.env['TEST_LOG'] ?? 'silent' })
  return {
    pool,
    log,
    live,
    clock,
    advance: (ms) => {
      now += ms
    },
    start: (over = {}) => {
      const deps = { source, appender, codecs, pool, live, clock, logger }
      const stage = startSync({ ...deps, limits: { standbyMs: 20 }, ...over })
      running.add(stage)
      return stage
    },
    stopAll: async () => {
      await Promise.allSettled([...running].map((stage) => stage.stop()))
      running.clear()
    },
    append: async (topic, keys) => {
      await appender.append(
        topic,
        keys.map((key) => ({ key, value: Buffer.from(key) })),
      )
    },
    outbound: async () => {
      const found: Outbound[] = []
      for (const [partition, { start: from, end: until }] of (
        await source.bounds('outbound')
      ).entries())
        for await (const batch of source.read({ topic: 'outbound', partition, from, until }))
          found.push(...(await codecs.outbound.decode(batch.entries.map(({ value }) => value))))
      return found
    },
  }
}

type Member = {
  readonly key: number
  readonly userId?: string | null
  readonly audienceId?: number
  readonly member?: boolean
}

/** What the projector does when a user enters or leaves. */
export const setMember = async (pool: Pool, { key, member = true, ...rest }: Member) => {
  const userId = rest.userId === undefined ? `u${key}` : rest.userId
  await pool.query(
    `insert into membership (audience_id, shard, user_key, user_id, cur, synced, entered_at)
     values ($1, $2, $3, $4, $5, false, null)
     on conflict (audience_id, user_key) do update set cur = $5, user_id = $4`,
    [rest.audienceId ?? 1, key % 64, key, userId, member],
  )
  await pool.query('delete from membership where not cur and not synced')
}

/** A timer of the user runs out. */
export const setDue = async (pool: Pool, key: number, due: Date) => {
  await pool.query(
    `insert into ustate (user_key, shard, workspace_id, ver, st, due)
     values ($1, $2, 1, 1, '', $3)`,
    [key, key % 64, due],
  )
}

export const setMembers = async (pool: Pool, keys: readonly number[]) => {
  await pool.query(
    `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
     select 1, key % 64, key, 'u' || key, true, false from unnest($1::bigint[]) as key`,
    [keys],
  )
}

export const goLive = async (pool: Pool, audienceId = 1, version = 1) => {
  await pool.query(
    `insert into audience_state
       (audience_id, workspace_id, version, state, live_at, condition, definition)
     values ($1, 1, $2, 'live', $3, '{}', '') on conflict (audience_id) do update set version = $2, state = 'live'`,
    [audienceId, version, start],
  )
}

export const setPosition = async (
  pool: Pool,
  { partition, next, folded }: { partition: number; next: number; folded?: number },
) => {
  const state = Buffer.alloc(8)
  state.writeBigInt64BE(BigInt(folded ?? 0))
  await pool.query(
    `insert into position (reader, topic, partition, next, epoch, state)
     values ('project', 'calls', $1, $2, 1, $3)
     on conflict (reader, topic, partition) do update set next = $2, state = $3`,
    [partition, next, state],
  )
}

export const bodyOf = (outbound: Outbound) =>
  JSON.parse(Buffer.from(outbound.body).toString('utf8'))

/** Until every `expect` of the condition holds. */
export const until = (condition: () => Promise<void> | void) =>
  vi.waitFor(condition, { timeout: 150_000, interval: 2 })

/** "u1:true", sorted: who was told what. */
export const told = (outbound: readonly Outbound[]): readonly string[] =>
  outbound.map((it) => `${it.userId}:${Object.values(bodyOf(it).traits)[0]}`).sort()
