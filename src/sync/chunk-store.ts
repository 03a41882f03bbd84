// The SQL of a chunk. Its statements share one REPEATABLE READ snapshot: what the last one records
// of positions is what the first one saw.
import type { Outbound } from '../domain/message.ts'
import type { Connection, Sql } from '../postgres/sql.ts'
import { copyOutbox, outboxRows } from './outbox-copy.ts'

/** The projector's state is the highest receivedAt it folded, in epoch ms, 8 bytes big-endian. */
const foldedSql = `max(case when octet_length(state) = 8
  then ('x' || encode(state, 'hex'))::bit(64)::bigint end)`

/** The instant of comparison: nothing folded may lie in its future. */
export const instantSql = (clock: string) => `(select greatest(${clock}::timestamptz,
    timestamptz 'epoch' + ${foldedSql} * interval '1 millisecond')
  from position where reader = 'project')`

export type Place = {
  readonly shard: number
  /** The last seq given out in the shard. */
  readonly seq: number
  /** How many chunks of it the run has had. */
  readonly chunk: number
  /** Whether any user's timer has run out. */
  readonly due: boolean
}

type Asked = {
  readonly runId: number
  readonly shards: readonly number[]
  readonly audienceIds: readonly number[]
  readonly now: Date
}

type Places = {
  readonly epoch: bigint
  readonly at: Date
  /** Those asked for that are not being built anew since the run was opened. */
  readonly live: readonly number[]
  readonly places: readonly Place[]
}

/** Also pins the plans of the transaction: every statement here touches few rows through an index. */
export const readPlaces = async (
  tx: Sql,
  { runId, shards, audienceIds, now }: Asked,
): Promise<Places> => {
  const { rows } = await tx.query<Place & Omit<Places, 'places'>>(
    `with pinned as materialized (
       select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
              set_config('enable_mergejoin', 'off', true)
     ), instant as materialized (select ${instantSql('$3')} as at)
     select r.epoch, i.at, s.shard,
            array(select audience_id from audience_state
                   where state = 'live' and audience_id = any($4)) as live,
            s.seq::float8 as seq,
            (select count(*) from sync_chunk c where c.run_id = $1 and c.shard = s.shard)::int
              as chunk,
            exists (select 1 from ustate u where u.shard = s.shard and u.due <= i.at) as due
       from pinned, relay r, instant i, outbox_shard s
      where s.shard = any($2)
      order by s.shard`,
    [runId, shards, now, audienceIds],
  )
  const { epoch, at, live } = rows[0] as (typeof rows)[number]
  return { epoch, at, live, places: rows }
}

export type ChangedRow = {
  readonly shard: number
  readonly audienceId: number
  readonly userId: string
  readonly member: boolean
  /** Of a computed trait, as JSON. */
  readonly value: string | null
}

type Packed = readonly [
  shard: number,
  audienceId: number,
  userId: string,
  member: boolean,
  value: string | null,
]

type Wanted = {
  readonly shards: readonly number[]
  readonly audienceIds: readonly number[]
  readonly limit: number
}

/**
 * Shard by shard through the partial index of unsynced rows: its cost follows the changes. What is read is
 * synced from here on, and reached by its place: by key, each row would be looked up a second time.
 */
export const claimChanged = async (tx: Sql, wanted: Wanted): Promise<readonly ChangedRow[]> => {
  const { rows } = await tx.query<{ changed: readonly Packed[] | null }>(
    `with wanted as materialized (
       select s.at, m.*
         from unnest($1::smallint[]) with ordinality as s(shard, at) cross join lateral (
           select ctid as place, shard, audience_id, user_key, user_id, cur, value
             from membership
            where membership.shard = s.shard and audience_id = any($2)
              and (cur is distinct from synced or value is distinct from synced_value)
              and user_id is not null
            order by audience_id, user_key
            limit $3) m
        order by s.at
        limit $3
     ), entered as (
       update membership m set synced = true, synced_value = m.value from wanted w
        where m.ctid = w.place and w.cur
     ), gone as (
       delete from membership m using wanted w where m.ctid = w.place and not w.cur
     )
     select json_agg(json_build_array(shard, audience_id, user_id, cur, value)
                     order by at, audience_id, user_key) as changed from wanted`,
    [wanted.shards, wanted.audienceIds, wanted.limit],
  )
  // As one value: a row of a result each would cost the driver more than all the rest of a change.
  return (rows[0]?.changed ?? []).map(([shard, audienceId, userId, member, value]) => ({
    shard,
    audienceId,
    userId,
    member,
    value,
  }))
}

export type Chunk = {
  readonly shard: number
  readonly chunk: number
  readonly changed: readonly ChangedRow[]
  readonly messages: readonly Outbound[]
}

type Chunks = { readonly runId: number; readonly at: Date; readonly chunks: readonly Chunk[] }

/** In the transaction that claimed the changes: outbox rows and `synced` move together, or not at all. */
export const saveChunks = async (tx: Connection, { runId, at, chunks }: Chunks): Promise<void> => {
  await recordChunks(tx, { runId, at, chunks })
  const messages = chunks.flatMap((chunk) => chunk.messages)
  if (messages.length > 0) await tx.copyIn(copyOutbox, outboxRows({ runId, at, messages }))
}

const recordChunks = async (tx: Sql, { runId, at, chunks }: Chunks): Promise<void> => {
  await tx.query(
    `with chunk as materialized (
       select * from unnest($3::smallint[], $4::int[], $5::int[], $6::int[])
         as c(shard, chunk, users, emitted)
     ), counted as (
       update outbox_shard s set seq = s.seq + c.emitted from chunk c
        where s.shard = c.shard and c.emitted > 0
     )
     insert into sync_chunk (run_id, shard, chunk, at, positions, users, emitted)
     select $1, c.shard, c.chunk, $2, p.positions, c.users, c.emitted
       from chunk c, ${positionsSql} p(positions)`,
    [
      runId,
      at,
      chunks.map(({ shard }) => shard),
      chunks.map(({ chunk }) => chunk),
      chunks.map(({ changed }) => changed.length),
      chunks.map(({ messages }) => messages.length),
    ],
  )
}

/** Where the projector stood, import progress included: {"calls/0": 12, …}. */
export const positionsSql = `(select coalesce(jsonb_object_agg(topic || '/' || partition, next), '{}')
   from position where reader = 'project')`
