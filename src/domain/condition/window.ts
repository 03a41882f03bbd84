// Time windows of event conditions: the head is exact, the tail moves on a grid that is part of the definition.

/** The last `lastMs`, in steps of `gridMs`; a multiple of it. */
export type Window = { readonly lastMs: number; readonly gridMs: number }

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const units: Readonly<Record<string, number>> = {
  s: second,
  m: minute,
  h: hour,
  d: day,
  w: 7 * day,
}

/** More buckets than this in one window are refused. */
export const windowBucketsMax = 4_096

/** '36h', '90d', … in milliseconds, or `null`. */
export const parseDuration = (text: string): number | null => {
  const [, count, unit] = /^([1-9][0-9]{0,8})([smhdw])$/.exec(text) ?? []
  if (count === undefined || unit === undefined) return null
  return Number(count) * (units[unit] as number)
}

export const defaultGrid = (lastMs: number): number => {
  if (lastMs <= hour) return second
  if (lastMs <= 48 * hour) return minute
  return lastMs <= 90 * day ? hour : day
}

/** A window of `lastMs`, or a sentence that says what was expected instead. */
export const windowOf = (lastMs: number, gridMs = defaultGrid(lastMs)): Window | string => {
  if (lastMs < minute) return 'expected a window of at least one minute'
  if (lastMs % gridMs !== 0)
    return `expected a multiple of ${gridMs / second} s, the grid of a window this long`
  if (lastMs / gridMs > windowBucketsMax)
    return `expected at most ${windowBucketsMax} steps of the grid of ${gridMs / second} s`
  return { lastMs, gridMs }
}

/** Effective time: an event is never in the future, and never before 1970. */
export const effectiveTime = (timestamp: number, receivedAt: number): number =>
  timestamp >= 0 ? Math.min(timestamp, receivedAt) : receivedAt

/** Without a window all of time is one bucket. */
export const bucketOf = (window: Window | null, te: number): number =>
  window === null ? 0 : Math.floor(te / window.gridMs)

/** Buckets above it are in the window at `at`. */
export const tailOf = (window: Window | null, at: number): number =>
  window === null ? -1 : Math.floor(at / window.gridMs) - window.lastMs / window.gridMs

/** The first instant at which `bucket` is out of the window. */
export const expiryOf = (window: Window | null, bucket: number): number =>
  window === null ? Number.POSITIVE_INFINITY : bucket * window.gridMs + window.lastMs
