// The SQL of the relay: its fence, its bounds, and the outbox it empties.
import { numberList } from '../audience/lists.ts'
import type { Outbound } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Span } from './spans.ts'

export type Taken = { readonly epoch: bigint; readonly bounds: readonly bigint[] | null }

/** Takes the relay over: whoever held it before finds another epoch and stops. */
export const takeRelay = async (sql: Sql): Promise<Taken> => {
  const { rows } = await sql.query<{ epoch: bigint; bounds: string[] | null }>(
    'update relay set epoch = epoch + 1 returning epoch, bounds::text[] as bounds',
  )
  const row = rows[0] as { epoch: bigint; bounds: string[] | null }
  return { epoch: row.epoch, bounds: row.bounds?.map(BigInt) ?? null }
}

type Row = {
  readonly epoch: bigint
  readonly shard: number | null
  readonly seq: number
  readonly messageId: string
  readonly origin: Outbound['origin']
  readonly type: Outbound['type']
  readonly workspaceId: number
  readonly destinationId: number
  readonly userId: string
  /** Epoch ms: a timestamp is many times the work to read. */
  readonly at: number
  readonly body: Buffer
}

/** The oldest rows of each shard, in seq order; `null` when another process holds the relay. */
export const readOutbox = async (
  sql: Sql,
  { epoch, limit }: { readonly epoch: bigint; readonly limit: number },
): Promise<readonly Outbound[] | null> => {
  const { rows } = await sql.query<Row>(
    `select r.epoch, o.* from relay r left join (
       select shard, seq::float8 as seq, message_id as "messageId", origin, type,
              workspace_id as "workspaceId", destination_id as "destinationId",
              user_id as "userId",
              round(date_part('epoch', at) * 1000)::float8 as at, body
         from outbox order by outbox.shard, outbox.seq limit $1) o on true
      order by o.shard, o.seq`,
    [limit],
  )
  if (rows[0]?.epoch !== epoch) return null
  return rows.flatMap((row) => (row.shard === null ? [] : [outboundOf(row, row.shard)]))
}

const outboundOf = (row: Row, shard: number): Outbound => ({
  messageId: row.messageId,
  origin: row.origin,
  type: row.type,
  workspaceId: row.workspaceId,
  destinationId: row.destinationId,
  userId: row.userId,
  timestamp: row.at,
  receivedAt: row.at,
  shard,
  seq: row.seq,
  body: row.body,
})

type Asked = { readonly epoch: bigint; readonly spans: readonly Span[] }

/**
 * The shards whose spans are the oldest of the outbox, and whole: erasure may have taken rows, and others
 * may have added some before. `null` when another process holds the relay.
 */
export const readFirst = async (
  sql: Sql,
  { epoch, spans }: Asked,
): Promise<ReadonlySet<number> | null> => {
  const { rows } = await sql.query<{ epoch: bigint; shards: number[] }>(
    `select r.epoch, array(
       select s.shard
         from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as s(shard, first, last)
              cross join lateral (
                select count(*) as rows, min(seq) as first
                  from (select seq from outbox o where o.shard = s.shard and o.seq <= s.last
                         order by seq limit s.last - s.first + 2) o) as found
        group by s.shard
       having bool_and(found.rows = s.last - s.first + 1 and found.first = s.first)) as shards
       from relay r`,
    listsOf(spans),
  )
  return rows[0]?.epoch === epoch ? new Set(rows[0].shards) : null
}

const listsOf = (spans: readonly Span[]): readonly string[] => [
  numberList(spans.map(({ shard }) => shard)),
  numberList(spans.map(({ first }) => first)),
  numberList(spans.map(({ last }) => last)),
]

type Appended = Asked & {
  /** Every entry of the relay not deleted from the outbox lies at or after these. */
  readonly bounds: readonly bigint[]
}

/** Deletes what is in the log and moves the bounds; false when another process holds the relay. */
export const checkpoint = async (
  sql: Sql,
  { epoch, bounds, spans }: Appended,
): Promise<boolean> => {
  // By place: the planner would compare a short outbox with each span as a whole.
  const { rows } = await sql.query<{ held: boolean }>(
    `with held as (
       update relay set bounds = $5 where epoch = $4 returning epoch
     ), emptied as (
       delete from outbox where exists (select from held) and ctid = any(array(
         select o.place
           from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as s(shard, first, last)
                cross join lateral (
                  select ctid as place from outbox
                   where shard = s.shard and seq between s.first and s.last offset 0) o))
     )
     select exists (select from held) as held`,
    [...listsOf(spans), epoch, bounds],
  )
  return rows[0]?.held === true
}
