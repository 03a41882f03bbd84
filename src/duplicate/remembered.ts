// What one partition's duplicates module holds in memory: exact open hours, filters of sealed ones.
import { isInBloom } from './bloom.ts'
import { type Exact, openExact } from './exact.ts'
import { firstHourKept, hourMs, hourOf } from './window.ts'

export type Segment = {
  readonly id: bigint
  readonly hour: number
  readonly base: bigint
  readonly pageBits: number
  /** `null` when there was no room for it: then every digest may be in the segment. */
  bloom: Uint8Array | null
}

export type Remembered = {
  /** The highest receipt folded, -1 before the first. */
  readonly high: () => number
  readonly hours: () => ReadonlyMap<number, Exact>
  readonly segments: () => readonly Segment[]
  put(words: Uint32Array, at: number, receivedAt: number): void
  /** Whether the digest stands in an open hour with a receipt at or after `from`. */
  isOpen(words: Uint32Array, at: number, from: number): boolean
  /** Segments that may hold the digest with a receipt at or after `from`. */
  candidates(words: Uint32Array, at: number, from: number): readonly Segment[]
  /** Replaces an open hour by its segments. */
  seal(hour: number, segments: readonly Segment[]): void
  addSegments(segments: readonly Segment[]): void
  raise(receivedAt: number): void
  /** Drops hours no record can be compared with any more, and filters there is no room for. */
  trim(bloomBytesMax: number): void
  bytes(): { readonly open: number; readonly bloom: number }
}

export const remember = (): Remembered => {
  const hours = new Map<number, Exact>()
  let segments: Segment[] = []
  let high = -1
  const bloomBytes = () => segments.reduce((sum, { bloom }) => sum + (bloom?.length ?? 0), 0)
  return {
    high: () => high,
    hours: () => hours,
    segments: () => segments,
    put: (words, at, receivedAt) => {
      const hour = hourOf(receivedAt)
      let exact = hours.get(hour)
      if (exact === undefined) {
        exact = openExact()
        hours.set(hour, exact)
      }
      exact.put(words, at, receivedAt - hour * hourMs)
    },
    isOpen: (words, at, from) => {
      for (const [hour, exact] of hours) {
        const start = hour * hourMs
        if (start + hourMs <= from) continue
        const ms = exact.latest(words, at)
        if (ms >= 0 && start + ms >= from) return true
      }
      return false
    },
    candidates: (words, at, from) => {
      let found: Segment[] = none
      for (const segment of segments) {
        if ((segment.hour + 1) * hourMs <= from) continue
        const { bloom } = segment
        if (bloom && !isInBloom(bloom, words[at] as number, words[at + 1] as number)) continue
        // Nearly every id is new: no array is made for those.
        found = found === none ? [segment] : [...found, segment]
      }
      return found
    },
    seal: (hour, sealed) => {
      hours.delete(hour)
      segments = inOrder([...segments, ...sealed])
    },
    addSegments: (added) => {
      segments = inOrder([...segments, ...added])
    },
    raise: (receivedAt) => {
      high = Math.max(high, receivedAt)
    },
    trim: (bloomBytesMax) => {
      const first = firstHourKept(high)
      for (const hour of hours.keys()) if (hour < first) hours.delete(hour)
      segments = segments.filter(({ hour }) => hour >= first)
      // The oldest first: fewest retries come that late.
      for (const segment of segments) {
        if (bloomBytes() <= bloomBytesMax) return
        segment.bloom = null
      }
    },
    bytes: () => ({
      open: [...hours.values()].reduce((sum, exact) => sum + exact.bytes(), 0),
      bloom: bloomBytes(),
    }),
  }
}

const none: Segment[] = []

const inOrder = (segments: Segment[]) => segments.sort((a, b) => a.hour - b.hour)
