// The SQL of a chunk. Its statements share one REPEATABLE READ snapshot: what the last one records
// of positions is what the first one saw.
import type { Outbound } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

/** The projector's state is the highest receivedAt it folded, in epoch ms, 8 bytes big-endian. */
const foldedSql = `max(case when octet_length(state) = 8
  then ('x' || encode(state, 'hex'))::bit(64)::bigint end)`

/** The instant of comparison: nothing folded may lie in its future. */
export const instantSql = (clock: string) => `(select greatest(${clock}::timestamptz,
    timestamptz 'epoch' + ${foldedSql} * interval '1 millisecond')
  from position where reader = 'project')`

type Place = {
  readonly epoch: bigint
  /** The last seq given out in the shard. */
  readonly seq: number
  readonly chunk: number
  readonly at: Date
  /** Whether any user's timer has run out by then. */
  readonly due: boolean
}

type Asked = { readonly runId: number; readonly shard: number; readonly now: Date }

/** Also pins the plans of the transaction: every statement here touches few rows through an index. */
export const readPlace = async (tx: Sql, { runId, shard, now }: Asked): Promise<Place> => {
  const { rows } = await tx.query<Place>(
    `with pinned as materialized (
       select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
              set_config('enable_mergejoin', 'off', true)
     ), instant as materialized (select ${instantSql('$3')} as at)
     select r.epoch, s.seq::float8 as seq, i.at,
            (select count(*) from sync_chunk where run_id = $1 and shard = $2)::int as chunk,
            exists (select 1 from ustate where shard = $2 and due <= i.at) as due
       from pinned, relay r, outbox_shard s, instant i
      where s.shard = $2`,
    [runId, shard, now],
  )
  return rows[0] as Place
}

export type ChangedRow = {
  readonly audienceId: number
  readonly userKey: bigint
  readonly userId: string
  readonly member: boolean
}

type Wanted = {
  readonly shard: number
  readonly audienceIds: readonly number[]
  readonly limit: number
}

/** By the partial index of unsynced rows: its cost follows the changes, not the members. */
export const readChanged = async (tx: Sql, wanted: Wanted): Promise<readonly ChangedRow[]> => {
  const { rows } = await tx.query<ChangedRow>(
    `select audience_id as "audienceId", user_key as "userKey", user_id as "userId", cur as member
       from membership
      where shard = $1 and audience_id = any($2)
        and cur is distinct from synced and user_id is not null
      order by audience_id, user_key
      limit $3`,
    [wanted.shard, wanted.audienceIds, wanted.limit],
  )
  return rows
}

type Chunk = {
  readonly runId: number
  readonly shard: number
  readonly chunk: number
  readonly at: Date
  readonly changed: readonly ChangedRow[]
  readonly messages: readonly Outbound[]
}

/** Outbox rows and `synced` move together, or not at all. */
export const saveChunk = async (tx: Sql, chunk: Chunk): Promise<void> => {
  if (chunk.changed.length === 0) return recordChunk(tx, chunk)
  const { messages, changed } = chunk
  await tx.query(
    `with counter as (
       update outbox_shard set seq = seq + $6 where shard = $2
     ), posted as (
       insert into outbox (shard, seq, run_id, message_id, origin, workspace_id, destination_id,
                           user_id, at, body)
       select $2, o.seq, $1, o.message_id, o.origin, o.workspace_id, o.destination_id,
              o.user_id, $4, o.body
         from unnest($9::bigint[], $10::text[], $11::text[], $12::int[], $13::int[], $14::text[],
                     $15::bytea[])
           as o(seq, message_id, origin, workspace_id, destination_id, user_id, body)
     ), wanted as materialized (
       select * from unnest($7::int[], $8::bigint[]) as w(audience_id, user_key)
     ), entered as (
       update membership m set synced = true from wanted w
        where (m.audience_id, m.user_key) = (w.audience_id, w.user_key) and m.cur
     ), left_behind as (
       delete from membership m using wanted w
        where (m.audience_id, m.user_key) = (w.audience_id, w.user_key) and not m.cur
     )
     insert into sync_chunk (run_id, shard, chunk, at, positions, users, emitted)
     select $1, $2, $3, $4, ${positionsSql}, $5, $6`,
    [
      chunk.runId,
      chunk.shard,
      chunk.chunk,
      chunk.at,
      changed.length,
      messages.length,
      changed.map(({ audienceId }) => audienceId),
      changed.map(({ userKey }) => userKey),
      messages.map(({ seq }) => seq),
      messages.map(({ messageId }) => messageId),
      messages.map(({ origin }) => origin),
      messages.map(({ workspaceId }) => workspaceId),
      messages.map(({ destinationId }) => destinationId),
      messages.map(({ userId }) => userId),
      messages.map(({ body }) => body),
    ],
  )
}

const recordChunk = async (tx: Sql, { runId, shard, chunk, at }: Chunk): Promise<void> => {
  await tx.query(
    `insert into sync_chunk (run_id, shard, chunk, at, positions, users, emitted)
     select $1, $2, $3, $4, ${positionsSql}, 0, 0`,
    [runId, shard, chunk, at],
  )
}

/** Where the projector stood, import progress included: {"calls/0": 12, …}. */
export const positionsSql = `(select coalesce(jsonb_object_agg(topic || '/' || partition, next), '{}')
   from position where reader = 'project')`
