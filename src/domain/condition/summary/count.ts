// Counting events: how many there were in each bucket of the window.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import { bucketOf, headOf, tailOf, type Window } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import type { Kind } from './kind.ts'

/**
 * Counts by bucket, newest first: the newest buckets until at least `keep` events are held, older ones
 * dropped, because only the oldest held ever leave a window and no threshold looks further.
 */
export type CountSummary = {
  readonly buckets: readonly number[]
  readonly counts: readonly number[]
}

export const emptyCount: CountSummary = { buckets: [], counts: [] }

/** One event in `bucket`; the same object when it changes nothing. */
export const foldCount = (summary: CountSummary, bucket: number, keep: number): CountSummary => {
  const { buckets, counts } = summary
  let at = 0
  let newer = 0
  while (at < buckets.length && (buckets[at] as number) > bucket) newer += counts[at++] as number
  if (newer >= keep) return summary
  return buckets[at] === bucket
    ? truncate({ buckets, counts: counts.with(at, (counts[at] as number) + 1) }, keep)
    : truncate(
        { buckets: buckets.toSpliced(at, 0, bucket), counts: counts.toSpliced(at, 0, 1) },
        keep,
      )
}

export const combineCounts = (
  left: CountSummary,
  right: CountSummary,
  keep: number,
): CountSummary => {
  const buckets: number[] = []
  const counts: number[] = []
  let [l, r] = [0, 0]
  while (l < left.buckets.length || r < right.buckets.length) {
    const a = left.buckets[l] ?? Number.NEGATIVE_INFINITY
    const b = right.buckets[r] ?? Number.NEGATIVE_INFINITY
    buckets.push(Math.max(a, b))
    counts.push(
      (a >= b ? (left.counts[l++] as number) : 0) + (b >= a ? (right.counts[r++] as number) : 0),
    )
  }
  return truncate({ buckets, counts }, keep)
}

const truncate = (summary: CountSummary, keep: number): CountSummary => {
  let held = 0
  for (let at = 0; at < summary.counts.length; at++) {
    held += summary.counts[at] as number
    if (held >= keep && at + 1 < summary.counts.length)
      return { buckets: summary.buckets.slice(0, at + 1), counts: summary.counts.slice(0, at + 1) }
  }
  return summary
}

export type CountOperator = 'gte' | 'gt' | 'eq' | 'lte' | 'lt'

export type Threshold = { readonly op: CountOperator; readonly value: number }

export const reaches = ({ op, value }: Threshold, count: number): boolean => {
  switch (op) {
    case 'gte':
      return count >= value
    case 'gt':
      return count > value
    case 'eq':
      return count === value
    case 'lte':
      return count <= value
    case 'lt':
      return count < value
  }
}

/** How many events of the window are held: exact up to `keep`, and at least `keep` beyond. */
export const countAt = (summary: CountSummary, window: Window | null, at: number): number => {
  const [tail, head] = [tailOf(window, at), headOf(window, at)]
  let held = 0
  for (let index = 0; index < summary.buckets.length; index++) {
    const bucket = summary.buckets[index] as number
    if (bucket <= tail) break
    if (bucket <= head) held += summary.counts[index] as number
  }
  return held
}

/** The bucket whose leaving the window turns the comparison over, `null` when time alone never does. */
export const turningBucket = (
  summary: CountSummary,
  tail: number,
  threshold: Threshold,
): number | null => {
  let count = 0
  for (let at = 0; at < summary.buckets.length; at++)
    if ((summary.buckets[at] as number) > tail) count += summary.counts[at] as number
  const now = reaches(threshold, count)
  for (let at = summary.buckets.length - 1; at >= 0; at--) {
    const bucket = summary.buckets[at] as number
    if (bucket <= tail) continue
    count -= summary.counts[at] as number
    if (reaches(threshold, count) !== now) return bucket
  }
  return null
}

/** `keep`: no question looks further than that many newest events. */
export const countKind = (window: Window | null, keep: number): Kind<CountSummary> => {
  // The newest of a window of ages are not in it yet: there nothing can be dropped for them.
  const held = window?.type === 'ago' ? Number.POSITIVE_INFINITY : keep
  const span = spanOf(window)
  return {
    empty: emptyCount,
    fold: (summary, { te }) => {
      const bucket = bucketOf(window, te)
      if (bucket === null || bucket <= (summary.buckets[0] ?? bucket) - span) return summary
      return living(foldCount(summary, bucket, held), span)
    },
    combine: (left, right) => living(combineCounts(left, right, held), span),
    write: writeCount,
    read: readCount,
    valueAt: (summary, at) => countAt(summary, window, at),
    nextChange: ({ buckets }, at) => firstAfter(buckets, window, at),
  }
}

/** Without the buckets that are out of the window for good. */
const living = (summary: CountSummary, span: number): CountSummary => {
  const { buckets, counts } = summary
  const tail = (buckets[0] ?? 0) - span
  let until = buckets.length
  while (until > 0 && (buckets[until - 1] as number) <= tail) until--
  if (until === buckets.length) return summary
  return { buckets: buckets.slice(0, until), counts: counts.slice(0, until) }
}

/** How many buckets, then the newest and its count, then for each older one how much older, and its count. */
const writeCount = (to: ByteWriter, { buckets, counts }: CountSummary): void => {
  to.varint(buckets.length)
  let newer = buckets[0] ?? 0
  if (buckets.length > 0) to.varint(newer)
  for (let at = 0; at < buckets.length; at++) {
    const bucket = buckets[at] as number
    if (at > 0) to.varint(newer - bucket)
    to.varint(counts[at] as number)
    newer = bucket
  }
}

const readCount = (from: ByteReader): CountSummary => {
  const length = from.varint()
  let bucket = length > 0 ? from.varint() : 0
  const buckets: number[] = []
  const counts: number[] = []
  for (let at = 0; at < length; at++) {
    if (at > 0) bucket -= from.varint()
    buckets.push(bucket)
    counts.push(from.varint())
  }
  return { buckets, counts }
}
