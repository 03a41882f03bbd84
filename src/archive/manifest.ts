// The SQL of the archive's index: which segments there are, and what they hold.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ArchivedTopic } from './name.ts'
import type { Summary } from './segment.ts'

export type Partition = { readonly topic: Topic; readonly partition: number }

export type SegmentRow = Partition & {
  readonly topic: ArchivedTopic
  readonly first: bigint
  readonly next: bigint
  readonly path: string
  readonly generation: number
  readonly entries: number
  readonly bytes: bigint
  readonly sha256: Buffer
  readonly receivedTo: Date | null
  readonly erasedTo: bigint
}

const columns = `topic, partition, first_offset as first, next_offset as next, path, generation, entries,
  bytes, sha256, received_to as "receivedTo", erased_to as "erasedTo"`

export type NewSegment = Summary & {
  readonly topic: ArchivedTopic
  readonly partition: number
  readonly first: bigint
  readonly next: bigint
  readonly path: string
  readonly generation: number
  readonly bytes: number
  readonly sha256: Uint8Array
  readonly erasedTo: bigint
  readonly writtenAt: Date
}

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

/** Again after an answer that was lost: the same row. A segment written anew takes the place of the old one. */
export const saveSegment = async (
  tx: Sql,
  segment: NewSegment,
  table = 'archive_segment',
): Promise<void> => {
  await tx.query(
    `insert into ${table} (topic, partition, first_offset, next_offset, path, generation, entries,
       bytes, sha256, received_from, received_to, timestamp_from, timestamp_to, erased_to, written_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
     on conflict (topic, partition, first_offset) do update
       set next_offset = excluded.next_offset, path = excluded.path,
           generation = excluded.generation, entries = excluded.entries, bytes = excluded.bytes,
           sha256 = excluded.sha256, received_from = excluded.received_from,
           received_to = excluded.received_to, timestamp_from = excluded.timestamp_from,
           timestamp_to = excluded.timestamp_to, erased_to = excluded.erased_to,
           written_at = excluded.written_at`,
    [
      segment.topic,
      segment.partition,
      segment.first,
      segment.next,
      segment.path,
      segment.generation,
      segment.entries,
      segment.bytes,
      segment.sha256,
      dateOf(segment.receivedFrom),
      dateOf(segment.receivedTo),
      dateOf(segment.timestampFrom),
      dateOf(segment.timestampTo),
      segment.erasedTo,
      segment.writtenAt,
    ],
  )
}

/** By archive_segment_pkey. */
export const findSegment = async (
  sql: Sql,
  { topic, partition, at }: Partition & { readonly at: bigint },
): Promise<SegmentRow | null> => {
  const { rows } = await sql.query<SegmentRow>(
    `select * from (select ${columns} from archive_segment
       where topic = $1 and partition = $2 and first_offset <= $3
       order by first_offset desc limit 1) s where next > $3`,
    [topic, partition, at],
  )
  return rows[0] ?? null
}

/** Segments of a partition in order, some at a time. */
export const loadSegments = async (
  sql: Sql,
  { topic, partition, from, limit }: Partition & { readonly from: bigint; readonly limit: number },
): Promise<readonly SegmentRow[]> => {
  const { rows } = await sql.query<SegmentRow>(
    `select ${columns} from archive_segment
      where topic = $1 and partition = $2 and first_offset >= $3
      order by first_offset limit $4`,
    [topic, partition, from, limit],
  )
  return rows
}

export const countSegments = async (
  sql: Sql,
): Promise<readonly (Partition & { readonly segments: number; readonly bytes: number })[]> => {
  const { rows } = await sql.query<Partition & { segments: number; bytes: number }>(
    `select topic, partition, count(*)::float8 as segments, sum(bytes)::float8 as bytes
       from archive_segment group by 1, 2 order by 1, 2`,
  )
  return rows
}

export const loadPaths = async (
  sql: Sql,
  { topic, partition }: Partition,
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql.query<{ path: string }>(
    'select path from archive_segment where topic = $1 and partition = $2',
    [topic, partition],
  )
  return new Set(rows.map(({ path }) => path))
}

export type Chain = { readonly partition: number; readonly start: bigint; readonly end: bigint }

/** By partition: the last run of segments without a gap. */
export const loadChains = async (sql: Sql, topic: Topic): Promise<readonly Chain[]> => {
  const { rows } = await sql.query<Chain>(
    `select partition, max(first_offset) filter (where before is distinct from first_offset) as start,
            max(next_offset) as "end"
       from (select partition, first_offset, next_offset,
                    lag(next_offset) over (partition by partition order by first_offset) as before
               from archive_segment where topic = $1) s
      group by partition`,
    [topic],
  )
  return rows
}

/** By partition: the first segment that holds something received at or after the instant. */
export const loadFirstsAt = async (
  sql: Sql,
  { topic, at }: { readonly topic: Topic; readonly at: Date },
): Promise<ReadonlyMap<number, bigint>> => {
  const { rows } = await sql.query<{ partition: number; first: bigint }>(
    `select partition, min(first_offset) as first from archive_segment
      where topic = $1 and received_to >= $2 group by partition`,
    [topic, at],
  )
  return new Map(rows.map(({ partition, first }) => [partition, first]))
}

export const markErased = async (
  tx: Sql,
  { segment, erasedTo }: { readonly segment: SegmentRow; readonly erasedTo: bigint },
): Promise<void> => {
  await tx.query(
    `update archive_segment set erased_to = $4
      where topic = $1 and partition = $2 and first_offset = $3`,
    [segment.topic, segment.partition, segment.first, erasedTo],
  )
}

export const dropSegment = async (tx: Sql, segment: SegmentRow): Promise<void> => {
  await tx.query(
    'delete from archive_segment where topic = $1 and partition = $2 and first_offset = $3',
    [segment.topic, segment.partition, segment.first],
  )
}
