// Reads chunks of the Postgres log for many cursors at once. In the binary form of COPY a call costs either
// side half of what it costs in text, which has two digits for each of its bytes.
import { type CopiedRow, dateAt, rowsOf } from '../postgres/binary-copy.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Batch, Topic } from './log.ts'
import { type Chunk, unpack } from './postgres-chunk.ts'

export type Cursor = {
  readonly topic: Topic
  readonly partition: number
  readonly from: bigint
  /** Nothing at or above `from` was appended before this. */
  readonly after: Date
  /** Nothing from here on is wanted; absent: as far as there is. */
  readonly until?: bigint
  /** Chunks to look through for the bytes wanted; absent: nobody knows yet how large they are. */
  readonly chunks?: number
}

export type Fetched = {
  /** The first offset the log still has. */
  readonly start: bigint
  /** `null` when there is nothing at or above the cursor. */
  readonly batch: Batch | null
  readonly after: Date
  readonly chunks: number
  /** There is more behind it. */
  readonly isCut: boolean
}

// The first chunk that ends at or after `until` is the last one wanted. Without it, whoever wants a few entries
// would be given as many bytes as fit.
const upToSql = `and next_offset <= coalesce((
                   select next_offset from log_chunk
                    where topic = w.topic and partition = w.partition
                      and w.until > 0 and next_offset >= w.until and appended_at >= w.after
                    order by next_offset limit 1), ${2n ** 63n - 1n})`

/** COPY takes no parameters: topics are words of ours, the rest are numbers and instants. */
type Wanted = {
  readonly cursors: readonly Cursor[]
  readonly bytesMax: number
  readonly chunks: number
}

const array = (values: readonly (string | number | bigint)[], type: string): string =>
  `'{${values.join(',')}}'::${type}[]`

// By the primary key of the days not before each cursor: at the tail, one table. One statement is
// one snapshot, so every offset below the counter it sees is either in a chunk it sees or a hole.
const fetchSql = ({ cursors, bytesMax, chunks }: Wanted): string => {
  const topics = array(
    cursors.map(({ topic }) => topic),
    'text',
  )
  const partitions = array(
    cursors.map(({ partition }) => partition),
    'int',
  )
  const froms = array(
    cursors.map(({ from }) => from),
    'bigint',
  )
  const untils = array(
    cursors.map(({ until }) => until ?? 0n),
    'bigint',
  )
  const afters = array(
    cursors.map(({ after }) => `"${after.toISOString()}"`),
    'timestamptz',
  )
  return `copy (
  select w.cursor::int, p.start_offset, p.next_offset, p.appended_at,
         c.first_offset, c.next_offset, c.appended_at, c.payload
    from unnest(${topics}, ${partitions}, ${froms}, ${untils}, ${afters}) with ordinality
           as w(topic, partition, "from", until, after, cursor)
    join log_partition p using (topic, partition)
    left join lateral (
      select c.*, sum(length(c.payload)) over (order by c.next_offset) as bytes
        from (select first_offset, next_offset, appended_at, payload from log_chunk
               where topic = w.topic and partition = w.partition
                 and next_offset > w."from" and appended_at >= w.after
                 ${cursors.some(({ until }) => until !== undefined) ? upToSql : ''}
               order by next_offset limit ${chunks}) c
    ) c on c.bytes <= ${Math.floor(bytesMax)} or c.bytes = length(c.payload)
   order by w.cursor, c.next_offset) to stdout (format binary)`
}

/** Of one cursor, in one query; fewer where the last one showed how many chunks the bytes are. */
const chunksMax = 512
const chunksMin = 16

/** What each cursor can read, at most `bytesMax` for each, one chunk at least; in the cursors' order. */
export const fetchChunks = async (
  pool: Pool,
  cursors: readonly Cursor[],
  bytesMax: number,
): Promise<readonly Fetched[]> => {
  const chunks = Math.max(...cursors.map((cursor) => cursor.chunks ?? chunksMax))
  const text = fetchSql({ cursors, bytesMax, chunks })
  const messages = await pool.connect((connection) => connection.copyOut(text))
  const found: FetchRow[][] = cursors.map(() => [])
  for (const copied of rowsOf(messages)) {
    const row = rowOf(copied)
    found[row.cursor - 1]?.push(row)
  }
  return cursors.map((cursor, index) => fetched(cursor, { rows: found[index] ?? [], chunks }))
}

type FetchRow = {
  readonly cursor: number
  readonly start: bigint
  readonly end: bigint
  readonly endAt: Date
  /** `null`: nothing at or above the cursor. */
  readonly chunk: (Chunk & { readonly appendedAt: Date }) | null
}

const rowOf = ([cursor, start, end, endAt, first, next, at, payload]: CopiedRow): FetchRow => ({
  cursor: (cursor as Buffer).readInt32BE(0),
  start: (start as Buffer).readBigInt64BE(0),
  end: (end as Buffer).readBigInt64BE(0),
  endAt: dateAt(endAt as Buffer),
  chunk:
    first && next && at && payload
      ? {
          first: first.readBigInt64BE(0),
          next: next.readBigInt64BE(0),
          appendedAt: dateAt(at),
          payload,
        }
      : null,
})

type Found = { readonly rows: readonly FetchRow[]; readonly chunks: number }

const fetched = ({ from }: Cursor, { rows, chunks }: Found): Fetched => {
  const [head] = rows
  const last = rows.at(-1)
  if (!head || !last) throw new Error('the log has no such partition')
  const { start, end, endAt } = head
  if (last.chunk === null) {
    const batch = from < end ? { from, next: end, entries: [] } : null
    return { start, after: endAt, batch, chunks: chunksMax, isCut: false }
  }
  const { next, appendedAt } = last.chunk
  const entries = rows.flatMap(({ chunk }) => (chunk ? unpack(chunk, { from, until: next }) : []))
  const isCut = next < end
  const isCutByBytes = isCut && rows.length < chunks
  return {
    start,
    after: appendedAt,
    batch: { from, next, entries },
    chunks: isCutByBytes ? Math.min(chunksMax, Math.max(chunksMin, 2 * rows.length)) : chunksMax,
    isCut,
  }
}
