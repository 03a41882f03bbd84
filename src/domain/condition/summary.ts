// What a leaf keeps of a user's events: a commutative monoid, so that late events, back-fill and merges
// all come down to `combine`, in any order.

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

/** How many events above the tail are held: exact up to `keep`, and at least `keep` beyond. */
export const countAbove = (summary: CountSummary, tail: number): number => {
  let held = 0
  for (let at = 0; at < summary.buckets.length; at++) {
    if ((summary.buckets[at] as number) <= tail) break
    held += summary.counts[at] as number
  }
  return held
}

export const reaches = (threshold: Threshold, count: number): boolean => {
  switch (threshold.op) {
    case 'gte':
      return count >= threshold.value
    case 'gt':
      return count > threshold.value
    case 'eq':
      return count === threshold.value
    case 'lte':
      return count <= threshold.value
    case 'lt':
      return count < threshold.value
  }
}

/** The bucket whose leaving the window turns the comparison over, `null` when time alone never does. */
export const turningBucket = (
  summary: CountSummary,
  tail: number,
  threshold: Threshold,
): number | null => {
  let count = countAbove(summary, tail)
  const now = reaches(threshold, count)
  for (let at = summary.buckets.length - 1; at >= 0; at--) {
    const bucket = summary.buckets[at] as number
    if (bucket <= tail) continue
    count -= summary.counts[at] as number
    if (reaches(threshold, count) !== now) return bucket
  }
  return null
}
