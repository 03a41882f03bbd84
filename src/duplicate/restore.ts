// Restores what a reader had seen before an offset, whoever stored it and however far they came.
import type { Sql } from '../postgres/sql.ts'
import { entryBytes, msInHourOf, offsetOf } from './entry.ts'
import { type Remembered, remember } from './remembered.ts'
import { segmentOf } from './seal.ts'
import {
  loadChunks,
  loadSegmentPages,
  loadSegments,
  type PartitionKey,
  type StoredSegment,
} from './store.ts'
import { hourMs } from './window.ts'
import { wordsOf } from './words.ts'

type Restoring = { readonly sql: Sql; readonly key: PartitionKey }

/** Chunks before segments: an hour being sealed meanwhile is then seen in one of them at least. */
export const restoreBefore = async ({ sql, key }: Restoring, next: bigint): Promise<Remembered> => {
  const remembered = remember()
  for (const { hour, base, entries } of await loadChunks(sql, key, null))
    for (let at = 0; at < entries.length; at += entryBytes) {
      if (offsetOf(base, entries, at) >= next) break
      const receivedAt = hour * hourMs + msInHourOf(entries, at)
      remembered.put(wordsOf([entries.subarray(at, at + 16)]), 0, receivedAt)
      remembered.raise(receivedAt)
    }
  const segments = await loadSegments(sql, key, { hour: null, known: [] })
  for (const segment of segments) remembered.raise(await highBefore(sql, segment, next))
  remembered.addSegments(segments.map(segmentOf))
  return remembered
}

/** A segment that reaches beyond the offset is rare, and then its pages tell. */
const highBefore = async (sql: Sql, segment: StoredSegment, next: bigint): Promise<number> => {
  if (segment.last < next) return Number(segment.high)
  let high = -1
  for (const { entries } of await loadSegmentPages(sql, segment.id))
    for (let at = 0; at < entries.length; at += entryBytes)
      if (offsetOf(segment.base, entries, at) < next)
        high = Math.max(high, segment.hour * hourMs + msInHourOf(entries, at))
  return high
}
