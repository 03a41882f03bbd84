// What the duplicates module keeps in Postgres: open chunks, sealed segments and their pages.
import type { Sql } from '../postgres/sql.ts'
import type { Chunk, Pages } from './entry.ts'

export type PartitionKey = {
  readonly reader: string
  readonly topic: string
  readonly partition: number
}

export type KeyedChunk = PartitionKey & Chunk

/** As unnest takes them: reader, topic, partition, hour, base, entries. */
const columnsOf = (chunks: readonly KeyedChunk[]) => [
  chunks.map((chunk) => chunk.reader),
  chunks.map((chunk) => chunk.topic),
  chunks.map((chunk) => chunk.partition),
  chunks.map((chunk) => chunk.hour),
  chunks.map((chunk) => chunk.base),
  chunks.map((chunk) => chunk.entries),
]

export const insertChunks = async (sql: Sql, chunks: readonly KeyedChunk[]): Promise<void> => {
  if (chunks.length === 0) return
  await sql.query(
    `insert into duplicate_chunk (reader, topic, partition, hour, base, entries)
     select * from unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::bigint[], $6::bytea[])`,
    columnsOf(chunks),
  )
}

/** A partition as its reader gained it. */
export type Owned = { readonly topic: string; readonly partition: number; readonly epoch: bigint }

/**
 * Inserts the chunks of those partitions whose epoch still stands, and answers these. Without a lock: what a zombie
 * records a moment later is what the log holds, and only positions say what may be passed.
 */
export const insertOwnedChunks = async (
  sql: Sql,
  chunks: readonly KeyedChunk[],
  owned: readonly (Owned & Pick<PartitionKey, 'reader'>)[],
): Promise<readonly Pick<PartitionKey, 'topic' | 'partition'>[]> => {
  const { rows } = await sql.query<Pick<PartitionKey, 'topic' | 'partition'>>(
    `with ours as (
       select reader, topic, partition
         from unnest($1::text[], $2::text[], $3::int[], $4::bigint[]) as o(reader, topic, partition, epoch)
         join position using (reader, topic, partition, epoch)
     ), inserted as (
       insert into duplicate_chunk (reader, topic, partition, hour, base, entries)
       select c.*
         from unnest($5::text[], $6::text[], $7::int[], $8::int[], $9::bigint[], $10::bytea[])
                as c(reader, topic, partition, hour, base, entries)
         join ours using (reader, topic, partition)
     )
     select topic, partition from ours`,
    [
      owned.map((each) => each.reader),
      owned.map((each) => each.topic),
      owned.map((each) => each.partition),
      owned.map((each) => each.epoch),
      ...columnsOf(chunks),
    ],
  )
  return rows
}

export type StoredChunk = Chunk & { readonly id: bigint }

/** Of one hour, or of all when it is `null`, in the order of their offsets. */
export const loadChunks = async (
  sql: Sql,
  key: PartitionKey,
  hour: number | null,
): Promise<readonly StoredChunk[]> => {
  const { rows } = await sql.query<StoredChunk>(
    `select id, hour, base, entries from duplicate_chunk
      where (reader, topic, partition) = ($1, $2, $3) and ($4::int is null or hour = $4)
      order by base`,
    [key.reader, key.topic, key.partition, hour],
  )
  return rows
}

/** By hour too, so that the index finds them. */
export const deleteChunks = async (
  sql: Sql,
  key: PartitionKey & { readonly hour: number },
  ids: readonly bigint[],
): Promise<void> => {
  await sql.query(
    `delete from duplicate_chunk
      where (reader, topic, partition, hour) = ($1, $2, $3, $4) and id = any($5::bigint[])`,
    [key.reader, key.topic, key.partition, key.hour, ids],
  )
}

/** One statement: a segment is never seen without its pages. */
export const insertSegment = async (
  sql: Sql,
  key: PartitionKey & { readonly hour: number },
  { pages, bloom }: { readonly pages: Pages; readonly bloom: Uint8Array },
): Promise<void> => {
  await sql.query(
    `with segment as (
       insert into duplicate_segment (reader, topic, partition, hour, base, last, high, page_bits, bloom)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       returning id
     )
     insert into duplicate_page (segment_id, page, entries)
     select segment.id, page.page, page.entries
       from segment, unnest($10::int[], $11::bytea[]) as page(page, entries)`,
    [
      key.reader,
      key.topic,
      key.partition,
      key.hour,
      pages.base,
      pages.last,
      Math.trunc(pages.high),
      pages.pageBits,
      bloom,
      pages.pages.map(({ page }) => page),
      pages.pages.map(({ entries }) => entries),
    ],
  )
}

export type StoredSegment = {
  readonly id: bigint
  readonly hour: number
  readonly base: bigint
  readonly last: bigint
  readonly high: bigint
  readonly pageBits: number
  readonly bloom: Buffer
}

/** All segments of the partition, or those of one hour that are not known yet. */
export const loadSegments = async (
  sql: Sql,
  key: PartitionKey,
  { hour, known }: { readonly hour: number | null; readonly known: readonly bigint[] },
): Promise<readonly StoredSegment[]> => {
  const { rows } = await sql.query<StoredSegment>(
    `select id, hour, base, last, high, page_bits as "pageBits", bloom from duplicate_segment
      where (reader, topic, partition) = ($1, $2, $3) and ($4::int is null or hour = $4)
        and id <> all($5::bigint[])
      order by hour, id`,
    [key.reader, key.topic, key.partition, hour, known],
  )
  return rows
}

export type PageKey = { readonly segmentId: bigint; readonly page: number }
export type StoredPage = PageKey & { readonly entries: Buffer }

/** By primary key, about 1.5 KB each; the limit keeps the planner from scanning for many at once. */
export const loadPages = async (sql: Sql, keys: readonly PageKey[]): Promise<StoredPage[]> => {
  const { rows } = await sql.query<StoredPage>(
    `select wanted.segment_id as "segmentId", wanted.page, found.entries
       from unnest($1::bigint[], $2::int[]) as wanted(segment_id, page)
      cross join lateral (
        select entries from duplicate_page
         where (segment_id, page) = (wanted.segment_id, wanted.page) limit 1
      ) as found`,
    [keys.map(({ segmentId }) => segmentId), keys.map(({ page }) => page)],
  )
  return rows
}

export const loadSegmentPages = async (sql: Sql, segmentId: bigint): Promise<StoredPage[]> => {
  const { rows } = await sql.query<StoredPage>(
    `select segment_id as "segmentId", page, entries from duplicate_page where segment_id = $1`,
    [segmentId],
  )
  return rows
}

/** Where the reader would start again now; `null` before it first moved. */
export const findNext = async (sql: Sql, key: PartitionKey): Promise<bigint | null> => {
  const { rows } = await sql.query<{ next: bigint }>(
    'select next from position where (reader, topic, partition) = ($1, $2, $3)',
    [key.reader, key.topic, key.partition],
  )
  return rows[0]?.next ?? null
}

export const deleteHoursBefore = async (
  sql: Sql,
  key: PartitionKey,
  hour: number,
): Promise<void> => {
  await sql.query(
    `with gone as (
       delete from duplicate_segment
        where (reader, topic, partition) = ($1, $2, $3) and hour < $4
       returning id
     ), pages as (
       delete from duplicate_page where segment_id in (select id from gone)
     )
     delete from duplicate_chunk where (reader, topic, partition) = ($1, $2, $3) and hour < $4`,
    [key.reader, key.topic, key.partition, hour],
  )
}
