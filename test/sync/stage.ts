// A sync stage on a real Postgres and a log in memory, with memberships written by hand.
import pino from 'pino'
import type { Outbound } from '../../src/domain/message.ts'
import { partitionOf } from '../../src/domain/partition.ts'
import type { Appender, Codec, Recorded, Source, Topic } from '../../src/log/log.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { startSync } from '../../src/sync/sync.ts'
import type { SweepDue } from '../../src/sync/term.ts'
import { aDestination, aLive, anAudience, type TestLive } from '../support/configuration.ts'

export const partitions = 4
export const start = new Date('2024-03-01T00:00:00.000Z')

/** Just what the stage needs of a log: what was appended, in order, and when it may be seen. */
export type ArrayLog = Appender & Source & { readonly entries: Record<Topic, Recorded[][]> }

export const arrayLog = (): ArrayLog => {
  const lanes = () => Array.from({ length: partitions }, (): Recorded[] => [])
  const entries = { calls: lanes(), 'calls.import': lanes(), outbound: lanes() }
  const lane = (topic: Topic, partition: number) => entries[topic][partition] as Recorded[]
  return {
    entries,
    append: async (topic, added) =>
      added.map((entry) => {
        const partition = partitionOf(entry.key, partitions)
        const offset = BigInt(lane(topic, partition).length)
        lane(topic, partition).push({ offset, ...entry })
        return { partition, offset }
      }),
    bounds: async (topic) =>
      entries[topic].map(({ length }) => ({ start: 0n, end: BigInt(length) })),
    read: async function* ({ topic, partition, from, until }) {
      const found = lane(topic, partition).slice(Number(from), Number(until))
      if (found.length > 0) yield { from, next: until, entries: found }
    },
    offsetsAt: async (topic) => entries[topic].map(() => 0n),
    join: () => {
      throw new Error('the sync stage joins no group')
    },
    close: async () => undefined,
  }
}

export const jsonCodec: Codec<Outbound> = {
  encode: (record) =>
    Buffer.from(JSON.stringify({ ...record, body: Buffer.from(record.body).toString('utf8') })),
  decode: (values) =>
    values.map((value) => {
      const record = JSON.parse(Buffer.from(value).toString('utf8'))
      return { ...record, body: Buffer.from(record.body) }
    }),
}

export type World = {
  readonly pool: Pool
  readonly log: ArrayLog
  readonly live: TestLive
  readonly clock: () => Date
  advance(ms: number): void
  /** Starts one more process of the stage; `over` replaces what it sees of the world. */
  start(over?: Partial<Parameters<typeof startSync>[0]>): Running
  stopAll(): Promise<void>
  /** Decoded, by partition and offset. */
  outbound(): readonly Outbound[]
}

export const noSweep: SweepDue = async () => 0

// EARLY
const early = `
create table if not exists membership(audience_id int, shard smallint, user_key bigint, user_id text null, cur boolean not null, synced boolean not null, entered_at timestamptz null, primary key (audience_id, user_key));
create index if not exists membership_dirty on membership (shard, audience_id, user_key) where cur is distinct from synced and user_id is not null;
create table if not exists ustate(user_key bigint primary key, shard smallint, due timestamptz null);
create index if not exists ustate_due on ustate (shard, due) where due is not null;
create table if not exists audience_state(audience_id int primary key, version int, state text, live_at timestamptz);`
// EARLY END
export const openWorld = async (pool: Pool): Promise<World> => {
  await pool.query(early)
  await pool.query(`truncate membership, ustate, audience_state, position, sync_run, sync_chunk,
    sync_schedule, outbox restart identity`)
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set epoch = 0, bounds = null')
  const log = arrayLog()
  const live = aLive({ destinations: [aDestination()], audiences: [anAudience()] })
  const running = new Set<Running>()
  let now = start.getTime()
  const clock = () => new Date(now)
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
      const codecs = { outbound: jsonCodec }
      const deps = { source: log, appender: log, codecs, pool, live, clock, logger }
      const stage = startSync({ ...deps, sweepDue: noSweep, limits: { standbyMs: 20 }, ...over })
      running.add(stage)
      return stage
    },
    stopAll: async () => {
      await Promise.allSettled([...running].map((stage) => stage.stop()))
      running.clear()
    },
    outbound: () =>
      log.entries.outbound.flatMap(
        (lane) => jsonCodec.decode(lane.map(({ value }) => value)) as readonly Outbound[],
      ),
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

export const setMembers = async (pool: Pool, keys: readonly number[]) => {
  await pool.query(
    `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
     select 1, key % 64, key, 'u' || key, true, false from unnest($1::bigint[]) as key`,
    [keys],
  )
}

export const goLive = async (pool: Pool, audienceId = 1, version = 1) => {
  await pool.query(
    `insert into audience_state (audience_id, version, state, live_at)
     values ($1, $2, 'live', $3) on conflict (audience_id) do update set version = $2, state = 'live'`,
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

/** "u1:true", sorted: who was told what. */
export const told = (outbound: readonly Outbound[]): readonly string[] =>
  outbound.map((it) => `${it.userId}:${Object.values(bodyOf(it).traits)[0]}`).sort()
