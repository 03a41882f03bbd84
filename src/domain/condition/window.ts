// Time windows of event conditions: the head is exact, edges move on a grid that is part of the definition.
import { dayStart, localDay } from '../zone.ts'

/** All durations are multiples of the grid. */
export type Window =
  /** The last `lastMs`. */
  | { readonly type: 'last'; readonly lastMs: number; readonly gridMs: number }
  /** Of an age from `fromMs`, inclusive, to `untilMs`, exclusive. */
  | {
      readonly type: 'ago'
      readonly fromMs: number
      readonly untilMs: number
      readonly gridMs: number
    }
  /** Epoch ms: from `after`, inclusive, to `before`, exclusive. */
  | { readonly type: 'fixed'; readonly after: number | null; readonly before: number | null }
  /** Local calendar days, today included. */
  | { readonly type: 'calendar'; readonly days: number; readonly timezone: string }

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
  return gridProblem(lastMs, gridMs) ?? { type: 'last', lastMs, gridMs }
}

/** A window of ages, or a sentence that says what was expected instead. */
export const windowAgo = (
  fromMs: number,
  untilMs: number,
  gridMs = defaultGrid(untilMs),
): Window | string => {
  if (untilMs - fromMs < gridMs) return 'expected the second age to be above the first'
  const problem = gridProblem(fromMs, gridMs) ?? gridProblem(untilMs, gridMs)
  return problem ?? { type: 'ago', fromMs, untilMs, gridMs }
}

const gridProblem = (ms: number, gridMs: number): string | null => {
  if (ms % gridMs !== 0)
    return `expected a multiple of ${gridMs / second} s, the grid of a window this long`
  return ms / gridMs > windowBucketsMax
    ? `expected at most ${windowBucketsMax} steps of the grid of ${gridMs / second} s`
    : null
}

/** Effective time: an event is never in the future, and never before 1970. */
export const effectiveTime = (timestamp: number, receivedAt: number): number =>
  timestamp >= 0 ? Math.min(timestamp, receivedAt) : receivedAt

/**
 * A whole number ≥ 0, as te is. Without a window, and within fixed bounds, all of time is one bucket;
 * `null` for what is never in it. Local days are counted from one before 1970, where UTC starts in the west.
 */
export const bucketOf = (window: Window | null, te: number): number | null => {
  switch (window?.type) {
    case undefined:
      return 0
    case 'last':
    case 'ago':
      return Math.floor(te / window.gridMs)
    case 'fixed':
      return te >= (window.after ?? te) && te < (window.before ?? Number.POSITIVE_INFINITY)
        ? 0
        : null
    case 'calendar':
      return localDay(window.timezone, te) + 1
  }
}

/** Buckets above it, and not above the head, are in the window at `at`. */
export const tailOf = (window: Window | null, at: number): number => {
  switch (window?.type) {
    case undefined:
    case 'fixed':
      return -1
    case 'last':
      return Math.floor(at / window.gridMs) - window.lastMs / window.gridMs
    case 'ago':
      return Math.floor(at / window.gridMs) - window.untilMs / window.gridMs
    case 'calendar':
      return localDay(window.timezone, at) + 1 - window.days
  }
}

export const headOf = (window: Window | null, at: number): number =>
  window?.type === 'ago'
    ? Math.floor(at / window.gridMs) - window.fromMs / window.gridMs
    : Number.POSITIVE_INFINITY

/** The first instant at which `bucket` is in the window. */
export const entryOf = (window: Window | null, bucket: number): number =>
  window?.type === 'ago' ? bucket * window.gridMs + window.fromMs : Number.NEGATIVE_INFINITY

/** The first instant at which `bucket` is out of the window. */
export const expiryOf = (window: Window | null, bucket: number): number => {
  switch (window?.type) {
    case undefined:
    case 'fixed':
      return Number.POSITIVE_INFINITY
    case 'last':
      return bucket * window.gridMs + window.lastMs
    case 'ago':
      return bucket * window.gridMs + window.untilMs
    case 'calendar':
      return dayStart(window.timezone, bucket - 1 + window.days)
  }
}
