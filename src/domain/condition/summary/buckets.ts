// The buckets of a window over time: which can still be asked for, and when time alone moves one in or out.
import { dayStart } from '../../zone.ts'
import { bucketOf, entryOf, expiryOf, headOf, tailOf, type Window } from '../window.ts'

/** Buckets this far below the newest one folded are never in the window again; no instant asked is before it. */
export const spanOf = (window: Window | null): number => {
  switch (window?.type) {
    case undefined:
    case 'fixed':
      return Number.POSITIVE_INFINITY
    case 'last':
      return window.lastMs / window.gridMs
    case 'ago':
      return window.untilMs / window.gridMs
    case 'calendar':
      // One more: clocks put back just after midnight return to the day before.
      return window.days + 1
  }
}

/** Events before it are out of the window for good once one of `newest` is known. */
export const aliveFrom = (window: Window | null, newest: number): number => {
  if (window === null || window.type === 'fixed') return Number.NEGATIVE_INFINITY
  const first = (bucketOf(window, newest) as number) - spanOf(window) + 1
  return window.type === 'calendar' ? dayStart(window.timezone, first - 1) : first * window.gridMs
}

export const isInside = (window: Window | null, bucket: number, at: number): boolean =>
  bucket > tailOf(window, at) && bucket <= headOf(window, at)

/** Of buckets newest first: the first instant after `at` at which one of them enters or leaves the window. */
export const firstAfter = (
  buckets: readonly number[],
  window: Window | null,
  at: number,
): number => {
  const leaves = oldestAbove(buckets, tailOf(window, at))
  const expiry = leaves === null ? Number.POSITIVE_INFINITY : expiryOf(window, leaves)
  if (window?.type !== 'ago') return expiry
  const enters = oldestAbove(buckets, headOf(window, at))
  return enters === null ? expiry : Math.min(expiry, entryOf(window, enters))
}

const oldestAbove = (buckets: readonly number[], bound: number): number | null => {
  let [from, until] = [0, buckets.length]
  while (from < until) {
    const middle = (from + until) >> 1
    if ((buckets[middle] as number) > bound) from = middle + 1
    else until = middle
  }
  return from === 0 ? null : (buckets[from - 1] as number)
}
