// When a failed message is tried again: growing steps with jitter inside a window of four hours.

const second = 1_000
const minute = 60 * second

/** Spec: "retried for up to four hours", counted from the start of the first try. */
export const windowMs = 240 * minute

/** The last try is placed this long before the window closes, so that it starts inside. */
export const lastTryMs = 5 * second

/** A receiver may ask for this much time, not for more. */
export const retryAfterMaxMs = 60 * minute

/** After the n-th failed try; the last step repeats. */
export const retryStepsMs = [
  10 * second,
  30 * second,
  1 * minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  20 * minute,
  30 * minute,
] as const

export type Failure = {
  /** Tries made so far, this one included: at least 1. */
  readonly attempts: number
  readonly firstTryAt: number
  readonly now: number
  /** Uniform in [0, 1). */
  readonly random: number
  /** What the receiver asked for, or `null`. */
  readonly retryAfterMs: number | null
}

export type Next = { readonly type: 'retry'; readonly at: number } | { readonly type: 'expired' }

/** Every message gets a last try just before its deadline; after that one there is none. */
export const nextTry = (failure: Failure): Next => {
  const last = failure.firstTryAt + windowMs - lastTryMs
  if (failure.now >= last) return { type: 'expired' }
  const step = retryStepsMs[Math.min(failure.attempts, retryStepsMs.length) - 1] ?? 0
  const asked = Math.min(failure.retryAfterMs ?? 0, retryAfterMaxMs)
  const delay = Math.max(step * (0.5 + failure.random), asked)
  return { type: 'retry', at: Math.min(failure.now + Math.ceil(delay), last) }
}

/** It begins with the first try: without one there is no end. */
export const windowEnd = (firstTryAt: number | null): number =>
  firstTryAt === null ? Number.POSITIVE_INFINITY : firstTryAt + windowMs

/** No try starts after the window, whatever delayed it. */
export const isExpired = (firstTryAt: number | null, now: number): boolean =>
  now >= windowEnd(firstTryAt)

/** How far before the window's end held messages begin to get their last tries. */
export const lastTrySpreadMs = 5 * second

/**
 * When a message that no URL may be asked about gets its one try all the same. It counts from the first try,
 * or, where there was none yet, from when it was parked.
 */
export const lastTryAt = (from: number, random: number): number =>
  from + windowMs - lastTryMs - Math.ceil(lastTrySpreadMs * random)

export const isLastTry = (from: number, now: number): boolean =>
  now >= from + windowMs - lastTryMs - lastTrySpreadMs
