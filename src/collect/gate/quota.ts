// Holds each source to its own calls per second: a bucket of tokens, of which this process has its share.
import type { Source } from '../../domain/configuration.ts'

export const quotaLimits = {
  /** A bucket holds what a source may send in so many seconds. */
  burstSeconds: 10,
  /** Whose buckets are kept; the one opened first goes, and begins anew full. */
  sourcesMax: 10_000,
}

type Metered = Pick<Source, 'id' | 'settings'>

/** A request of so many calls, at an instant in epoch ms. */
export type Asked = { readonly calls: number; readonly at: number }

export type Quotas = {
  /**
   * 0 unless not even one call may be sent: then the milliseconds until there is room for as many as
   * the source sent last.
   */
  spentMs(source: Metered, at: number): number
  /** Milliseconds until there is room for so many; 0: there was, and is used up. */
  take(source: Metered, asked: Asked): number
  /** What was taken for a request of which nothing was accepted. */
  giveBack(source: Metered, calls: number): void
}

type Bucket = { tokens: number; at: number; last: number }

/** What a bucket holds is a sum of fractions: less than this is nothing. */
const grain = 1e-6

type QuotaDeps = {
  /** How many processes share each quota. */
  readonly collectors: () => number
  readonly limits?: Partial<typeof quotaLimits>
}

export const openQuotas = (deps: QuotaDeps): Quotas => {
  const { burstSeconds, sourcesMax } = { ...quotaLimits, ...deps.limits }
  const buckets = new Map<number, Bucket>()
  const open = (id: number, bucket: Bucket) => {
    const [first] = buckets.size >= sourcesMax ? buckets.keys() : []
    if (first !== undefined) buckets.delete(first)
    buckets.set(id, bucket)
    return bucket
  }
  const look = ({ id, settings }: Metered, at: number) => {
    if (settings.callsPerSecondMax === null) return null
    const perSecond = settings.callsPerSecondMax / Math.max(1, deps.collectors())
    const capacity = Math.max(1, perSecond * burstSeconds)
    const bucket = buckets.get(id) ?? open(id, { tokens: capacity, at, last: 1 })
    const elapsed = Math.max(0, at - bucket.at) / 1_000
    bucket.tokens = Math.min(capacity, bucket.tokens + elapsed * perSecond)
    bucket.at = Math.max(bucket.at, at)
    const waitMs = (calls: number) => {
      // More than a bucket holds gets through when it is full, and is paid off afterwards.
      const missing = Math.min(calls, capacity) - bucket.tokens - grain
      return missing <= 0 ? 0 : Math.ceil((missing / perSecond) * 1_000)
    }
    return { bucket, waitMs }
  }
  return {
    spentMs: (source, at) => {
      const seen = look(source, at)
      return seen === null || seen.waitMs(1) === 0 ? 0 : seen.waitMs(seen.bucket.last)
    },
    take: (source, { calls, at }) => {
      const seen = look(source, at)
      if (seen === null) return 0
      const waitMs = seen.waitMs(calls)
      seen.bucket.last = calls
      if (waitMs === 0) seen.bucket.tokens -= calls
      return waitMs
    },
    giveBack: ({ id, settings }, calls) => {
      const bucket = settings.callsPerSecondMax === null ? undefined : buckets.get(id)
      if (bucket) bucket.tokens += calls
    },
  }
}
