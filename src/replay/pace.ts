// A replay's rate: what may be sent now, and no more than a moment's worth saved up.
import type { Clock } from '../running.ts'

export type Pace = {
  /** Calls that may be sent now. */
  room(): number
  spend(calls: number): void
}

type Options = {
  readonly clock: Clock
  readonly ratePerSecond: number
  readonly creditMs: number
}

/** Starts with nothing: whatever pauses and crashes a replay goes through, it never sends faster. */
export const openPace = ({ clock, ratePerSecond, creditMs }: Options): Pace => {
  const most = Math.max(1, (ratePerSecond * creditMs) / 1_000)
  let at = clock().getTime()
  let credit = 0
  return {
    room: () => {
      const now = clock().getTime()
      credit = Math.min(most, credit + (Math.max(0, now - at) * ratePerSecond) / 1_000)
      at = now
      return Math.floor(credit)
    },
    spend: (calls) => {
      credit -= calls
    },
  }
}

const smoothMs = 10_000

/** Offsets read in a second, over the last ten or so. */
export const paceOf = (
  before: number | null,
  { offsets, ms }: { readonly offsets: number; readonly ms: number },
): number | null => {
  if (ms <= 0) return before
  const now = (offsets * 1_000) / ms
  const weight = 1 - Math.exp(-ms / smoothMs)
  return before === null ? now : before + (now - before) * weight
}
