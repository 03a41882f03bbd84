// Looking at the store itself: what each file holds, and whether files and index say the same.
import { createHash } from 'node:crypto'
import type { Sql } from '../postgres/sql.ts'
import { uncompressed } from './frames.ts'
import { headOf, linesOf } from './line.ts'
import { loadSegments, type NewSegment, type Partition, type SegmentRow } from './manifest.ts'
import { archivedTopics, readPath, type SegmentName } from './name.ts'
import { emptySummary, type Summary, summed } from './segment.ts'
import type { Store } from './store.ts'

export type Found = SegmentName & { readonly path: string }

/** Every segment in the store; what nobody archived is passed over. */
export async function* findSegments(store: Store): AsyncGenerator<Found> {
  for (const topic of archivedTopics)
    for await (const { path } of store.list(`${topic}/`)) {
      const name = readPath(path)
      if (name !== null) yield { ...name, path }
    }
}

/**
 * Those that make up the archive: of each offset one segment, that of the highest generation, which has to
 * come first. The others are left over from processes that died, and hold nothing that these do not.
 */
export async function* pickedOf(paths: AsyncIterable<string>): AsyncGenerator<Found> {
  let last: Found | null = null
  for await (const path of paths) {
    const name = readPath(path)
    if (name === null) continue
    const isFollowing = last === null || isElsewhere(last, name) || name.first >= last.next
    if (!isFollowing) continue
    last = { ...name, path }
    yield last
  }
}

const isElsewhere = (one: SegmentName, other: SegmentName): boolean =>
  one.topic !== other.topic || one.partition !== other.partition

export type Inspected = Summary & { readonly bytes: number; readonly sha256: Buffer }

/** Reads the whole of it. Rejects where it is damaged, or holds offsets its name does not. */
export const inspect = async (store: Store, { path, ...name }: Found): Promise<Inspected> => {
  const bytes = await store.get(path)
  if (bytes === null) throw new Error('it is not there')
  let summary = emptySummary
  let next = name.first
  for await (const lines of linesOf(uncompressed(name.compression, bytes)))
    for (const line of lines) {
      const head = headOf(line)
      if (head.offset < next || head.offset >= name.next)
        throw new Error(`it holds offset ${head.offset} out of its order`)
      next = head.offset + 1n
      summary = summed(summary, head)
    }
  return { ...summary, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest() }
}

export type Finding = { readonly path: string; readonly problem: string }

export type Checked = {
  readonly segments: number
  readonly entries: number
  readonly bytes: number
  readonly findings: readonly Finding[]
}

const segmentsAtOnce = 100
/** Of findings that are told; the rest is counted by the segments that are left. */
const findingsMax = 1_000

/** Every file that the index names, and every step from one to the next. */
export const checkArchive = async (sql: Sql, store: Store): Promise<Checked> => {
  const checking: Checking = { sql, store, findings: [], segments: 0, entries: 0, bytes: 0 }
  for (const place of await loadPartitions(sql)) await checkPartition(checking, place)
  const { findings, segments, entries, bytes } = checking
  return { segments, entries, bytes, findings }
}

type Checking = {
  readonly sql: Sql
  readonly store: Store
  readonly findings: Finding[]
  segments: number
  entries: number
  bytes: number
}

const note = ({ findings }: Checking, path: string, problem: string | null): void => {
  if (problem !== null && findings.length < findingsMax) findings.push({ path, problem })
}

const checkPartition = async (checking: Checking, place: Partition): Promise<void> => {
  const { sql, store } = checking
  let last: SegmentRow | null = null
  for (let from = 0n; ; ) {
    const rows = await loadSegments(sql, { ...place, from, limit: segmentsAtOnce })
    for (const row of rows) {
      if (last !== null && row.first !== last.next)
        note(checking, row.path, gapOf(last.next, row.first))
      note(checking, row.path, await problemOf(store, row))
      checking.segments += 1
      checking.entries += row.entries
      checking.bytes += Number(row.bytes)
      last = row
    }
    if (rows.length < segmentsAtOnce || last === null) break
    from = last.first + 1n
  }
  const end = await readEnd(sql, place)
  if (last !== null && end > last.next)
    note(checking, last.path, `offsets ${last.next} to ${end - 1n} after it are in no segment`)
}

/** What lies between the end of one segment and the beginning of the next. */
export const gapOf = (end: bigint, next: bigint): string =>
  next > end
    ? `offsets ${end} to ${next - 1n} before it are in no segment`
    : `offsets ${next} to ${end - 1n} are in the segment before it as well`

const problemOf = async (store: Store, row: SegmentRow): Promise<string | null> => {
  const name = readPath(row.path)
  if (name === null) return 'its name is not one of a segment'
  try {
    const { sha256, entries } = await inspect(store, { ...name, path: row.path })
    if (!sha256.equals(row.sha256)) return 'its checksum is not the one of the index'
    return entries === row.entries ? null : `it holds ${entries} entries, not ${row.entries}`
  } catch (error) {
    return (error as Error).message
  }
}

/** Where the archive stands in the partition. */
const readEnd = async (sql: Sql, { topic, partition }: Partition): Promise<bigint> => {
  const { rows } = await sql.query<{ next: bigint }>(
    `select next from position where reader = 'archive' and topic = $1 and partition = $2`,
    [topic, partition],
  )
  return rows[0]?.next ?? 0n
}

const loadPartitions = async (sql: Sql) => {
  const { rows } = await sql.query<Pick<SegmentRow, 'topic' | 'partition'>>(
    'select distinct topic, partition from archive_segment order by 1, 2',
  )
  return rows
}

/** What the index would say of a file. */
export const rowOf = (found: Found, inspected: Inspected, writtenAt: Date): NewSegment => {
  const { epoch: _, compression: __, ...name } = found
  // Whether erasures have been carried out on it cannot be seen: they are again.
  return { ...name, ...inspected, erasedTo: 0n, writtenAt }
}
