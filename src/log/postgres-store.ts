// The SQL of the Postgres log's topics: counters, chunks written, bounds; postgres-fetch.ts reads chunks.
import { type Sql, sqlState } from '../postgres/sql.ts'
import type { Topic } from './log.ts'
import type { Partitions } from './partitions.ts'
import type { Packed } from './postgres-chunk.ts'
import { ensureDays } from './postgres-days.ts'

/** Creates the partitions that are missing; answers how many there are, never fewer than before. */
export const openPartitions = async (sql: Sql, wanted: Partitions): Promise<Partitions> => {
  await sql.query(
    `insert into log_partition (topic, partition)
     select w.topic, generate_series(0, w.partitions - 1)
       from unnest($1::text[], $2::int[]) as w(topic, partitions)
     on conflict do nothing`,
    [Object.keys(wanted), Object.values(wanted)],
  )
  const { rows } = await sql.query<{ topic: Topic; partitions: number }>(
    'select topic, count(*)::int as partitions from log_partition group by topic',
  )
  const found = new Map(rows.map(({ topic, partitions }) => [topic, partitions]))
  return {
    calls: found.get('calls') ?? 0,
    'calls.import': found.get('calls.import') ?? 0,
    outbound: found.get('outbound') ?? 0,
    'outbound.replay': found.get('outbound.replay') ?? 0,
  }
}

export type FirstOffset = {
  readonly topic: Topic
  readonly partition: number
  readonly first: bigint
}

/**
 * One statement, one commit: locks the counters in (topic, partition) order before it touches any
 * (in any other order two appends over the same partitions deadlock), takes the offsets, stores the
 * chunks and notifies. The counter's lock is held to commit: offsets become visible in order.
 */
const appendSql = `
  with wanted as (
    select * from unnest($1::text[], $2::int[], $3::int[]) as w(topic, partition, entries)
  ), locked as materialized (
    select p.topic, p.partition, w.entries
      from log_partition p join wanted w using (topic, partition)
     order by p.topic, p.partition for update of p
  ), moved as (
    update log_partition p
       set next_offset = p.next_offset + l.entries, appended_at = greatest(p.appended_at, $4)
      from locked l
     where (p.topic, p.partition) = (l.topic, l.partition)
    returning p.topic, p.partition, p.next_offset - l.entries as first, p.appended_at
  ), stored as (
    insert into log_chunk (topic, partition, first_offset, next_offset, appended_at, payload)
    select topic, partition, m.first + c.before, m.first + c.before + c.entries, m.appended_at,
           substring($5::bytea from c.at + 1 for c.size)
      from unnest($6::text[], $7::int[], $8::int[], $9::int[], $10::int[], $11::int[])
             as c(topic, partition, before, entries, at, size)
      join moved m using (topic, partition)
  )
  select topic, partition, first, pg_notify('log', topic)::text from moved`

/** The day a chunk falls on has no table yet. */
const noTableForDay = '23514'

export const storeChunks = async (
  sql: Sql,
  packed: Packed,
  at: Date,
): Promise<readonly FirstOffset[]> => {
  const { bytes, counts, chunks } = packed
  const values = [
    counts.map(({ topic }) => topic),
    counts.map(({ partition }) => partition),
    counts.map(({ entries }) => entries),
    at,
    bytes,
    chunks.map(({ topic }) => topic),
    chunks.map(({ partition }) => partition),
    chunks.map(({ before }) => before),
    chunks.map(({ entries }) => entries),
    chunks.map((chunk) => chunk.at),
    chunks.map(({ size }) => size),
  ]
  try {
    return (await sql.query<FirstOffset>(appendSql, values)).rows
  } catch (error) {
    if (sqlState(error) !== noTableForDay) throw error
    await ensureDays(sql, at)
    return (await sql.query<FirstOffset>(appendSql, values)).rows
  }
}

type Bound = { readonly start: bigint; readonly end: bigint }

export const selectBounds = async (sql: Sql, topic: Topic): Promise<readonly Bound[]> => {
  const { rows } = await sql.query<Bound>(
    `select start_offset as start, next_offset as "end" from log_partition
      where topic = $1 order by partition`,
    [topic],
  )
  return rows
}

/** Reads one index in each day from that of `at` on: an operator's query, not a hot one. */
export const selectOffsetsAt = async (
  sql: Sql,
  topic: Topic,
  at: Date,
): Promise<readonly bigint[]> => {
  const { rows } = await sql.query<{ offset: bigint }>(
    `select coalesce((
              select min(c.first_offset) from log_chunk c
               where c.topic = p.topic and c.partition = p.partition and c.appended_at >= $2),
            p.next_offset) as offset
       from log_partition p where p.topic = $1 order by p.partition`,
    [topic, at],
  )
  return rows.map(({ offset }) => offset)
}
