// What was taken of a slice: the position may remember it as soon as the slice's duplicates are recorded,
// though the rest of the slice still waits for room.
import { countSettled, rememberPairs } from './pairs.ts'
import type { Partition } from './stage.ts'

/** Pairs of one call that owe nothing from the start. */
export type Unowed = { readonly duplicate: number; readonly filtered: number }

export type Taken = {
  see(until: number, unowed: Unowed): void
  /** Whether the duplicates are recorded; passes the answer on. */
  saved(isKept: boolean): boolean
  duplicate(): number
}

export const openTaken = (partition: Partition): Taken => {
  const { tracker } = partition
  const waiting = { duplicate: 0, filtered: 0 }
  let seen = 0
  let isSaved = false
  let duplicates = 0
  const remember = () => {
    tracker.secure(seen)
    if (waiting.duplicate > 0) countSettled(partition, 'duplicate', waiting.duplicate)
    if (waiting.filtered > 0) countSettled(partition, 'filtered', waiting.filtered)
    waiting.duplicate = 0
    waiting.filtered = 0
    rememberPairs(partition, seen)
  }
  return {
    see: (until, { duplicate, filtered }) => {
      seen = until
      duplicates += duplicate
      waiting.duplicate += duplicate
      waiting.filtered += filtered
      tracker.see(until)
      if (isSaved) remember()
    },
    saved: (isKept) => {
      isSaved = isKept
      if (isKept && seen > 0) remember()
      return isKept
    },
    duplicate: () => duplicates,
  }
}
