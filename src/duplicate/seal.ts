// Seals open hours: moves their entries from chunks to pages, and from exact maps to Bloom filters.
import type { Sql } from '../postgres/sql.ts'
import { addToBloom, emptyBloom } from './bloom.ts'
import { entryBytes, packPages } from './entry.ts'
import type { Remembered, Segment } from './remembered.ts'
import {
  deleteChunks,
  insertSegment,
  loadChunks,
  loadSegments,
  type PartitionKey,
  type StoredChunk,
  type StoredSegment,
} from './store.ts'
import { hourMs, hourOf } from './window.ts'

const sealAfterMs = 5 * 60_000
/** Partitions take turns, so that not all of them seal in the same second of an hour. */
const sealTurnMs = 4 * 60_000
const sealTurns = 12
/** Fewer cost less in an exact map than in pages: they stay until their hour is forgotten. */
const sealEntriesMin = 1_024

type Sealing = {
  readonly sql: Sql
  readonly key: PartitionKey
  readonly remembered: Remembered
  readonly bytesMax: number
  /** An hour is sealed from what is stored of it. */
  readonly stored?: (() => Promise<unknown>) | undefined
}

/** Makes room for the records about to be judged, by receipt: due hours first, then the largest. */
export const makeRoom = async (sealing: Sealing, receipts: Iterable<number>): Promise<void> => {
  const { remembered, key } = sealing
  const dueMs = sealAfterMs + (key.partition % sealTurns) * sealTurnMs
  for (const [hour, exact] of remembered.hours()) {
    if ((hour + 1) * hourMs + dueMs > remembered.high()) continue
    if (exact.size() >= sealEntriesMin) await sealHour(sealing, hour)
  }
  for (;;) {
    const largest = largestOf(sealing, receipts)
    if (largest === null) break
    await sealHour(sealing, largest)
  }
  remembered.trim(sealing.bytesMax / 2)
}

/** The open hour to seal, or `null` when all fit with what is about to come. */
const largestOf = ({ remembered, bytesMax }: Sealing, receipts: Iterable<number>) => {
  const coming = new Map<number, number>()
  for (const receivedAt of receipts)
    coming.set(hourOf(receivedAt), (coming.get(hourOf(receivedAt)) ?? 0) + 1)
  let bytes = 0
  let largest: { readonly hour: number; readonly size: number } | null = null
  for (const [hour, exact] of remembered.hours()) {
    bytes += exact.bytesWith(coming.get(hour) ?? 0)
    if (exact.size() > (largest?.size ?? 0)) largest = { hour, size: exact.size() }
  }
  return bytes > bytesMax / 2 ? (largest?.hour ?? null) : null
}

/**
 * Three statements, safe to stop between any two: an entry in a chunk and in a page is the same
 * entry. Another process that still thinks it owns the partition may seal the same hour; whatever
 * segments it made are taken over.
 */
const sealHour = async (sealing: Sealing, hour: number): Promise<void> => {
  const { sql, key, remembered } = sealing
  await sealing.stored?.()
  const hourKey = { ...key, hour }
  const chunks = await loadChunks(sql, key, hour)
  let rest: readonly { base: bigint; hour: number; entries: Buffer }[] = chunks
  while (rest.length > 0) {
    const packed = packPages(rest)
    const bloom = bloomOf(packed.pages.pages.map(({ entries }) => entries))
    await insertSegment(sql, hourKey, { pages: packed.pages, bloom })
    rest = packed.rest
  }
  const known = remembered.segments().map(({ id }) => id)
  const segments = await loadSegments(sql, key, { hour, known })
  await deleteChunks(
    sql,
    hourKey,
    chunks.map(({ id }: StoredChunk) => id),
  )
  remembered.seal(hour, segments.map(segmentOf))
}

const bloomOf = (pages: readonly Buffer[]): Uint8Array => {
  const ids = pages.reduce((sum, { length }) => sum + length / entryBytes, 0)
  const bloom = emptyBloom(ids)
  for (const entries of pages)
    for (let at = 0; at < entries.length; at += entryBytes)
      addToBloom(bloom, entries.readUInt32BE(at), entries.readUInt32BE(at + 4))
  return bloom
}

export const segmentOf = ({ id, hour, base, pageBits, bloom }: StoredSegment): Segment => ({
  id,
  hour,
  base,
  pageBits,
  bloom,
})
