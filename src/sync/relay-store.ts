// The SQL of the relay: its fence, its bounds, and the outbox it empties.
import { numberList } from '../audience/lists.ts'
import type { Outbound } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

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

type Appended = {
  readonly epoch: bigint
  /** Every entry of the relay not deleted from the outbox lies at or after these. */
  readonly bounds: readonly bigint[]
  readonly rows: readonly { readonly shard: number; readonly seq: number }[]
}

/** Deletes what is in the log and moves the bounds; false when another process holds the relay. */
export const checkpoint = async (sql: Sql, appended: Appended): Promise<boolean> => {
  const { rows } = await sql.query<{ held: boolean }>(
    `with held as (
       update relay set bounds = $2 where epoch = $1 returning epoch
     ), emptied as (
       delete from outbox o using held, unnest($3::smallint[], $4::bigint[]) as a(shard, seq)
        where (o.shard, o.seq) = (a.shard, a.seq)
     )
     select exists (select 1 from held) as held`,
    [
      appended.epoch,
      appended.bounds,
      numberList(appended.rows.map(({ shard }) => shard)),
      numberList(appended.rows.map(({ seq }) => seq)),
    ],
  )
  return rows[0]?.held === true
}
