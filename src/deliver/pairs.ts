// Counts (message, destination) pairs so that what a position remembers and what it counts are the same pairs.
import type { Open } from '../domain/tracker.ts'
import { type Counters, outcomes, type Partition } from './stage.ts'

type Outcome = keyof Counters

/** Of one partition, since it was gained. */
export type Pairs = {
  /** Consumed before: what the position said. */
  readonly before: bigint
  /** Pairs that offsets opened, and those of them not settled yet. */
  opened: number
  owed: number
  /** Up to here the position remembers what is settled; beyond it a crash forgets. */
  remembered: number
  /** Settled beyond it. */
  readonly ahead: Record<Outcome, number>
}

export const openPairs = (before: bigint, remembered: number): Pairs => ({
  before,
  opened: 0,
  owed: 0,
  remembered,
  ahead: every(0),
})

export const noCounters = (): Counters => every(0n)

const every = <T>(amount: T): Record<Outcome, T> =>
  Object.fromEntries(outcomes.map((outcome) => [outcome, amount])) as Record<Outcome, T>

export const owePairs = ({ pairs }: Partition, amount: number): void => {
  pairs.opened += amount
  pairs.owed += amount
}

type Settled = { readonly open: Open; readonly outcome: Outcome; readonly amount: number }

/** Pairs that an open offset owed. */
export const settlePairs = (
  { pairs, counters }: Partition,
  { open, outcome, amount }: Settled,
): void => {
  pairs.owed -= amount
  if (open.offset < pairs.remembered) counters[outcome] += BigInt(amount)
  else pairs.ahead[outcome] += amount
}

/** Pairs that owe nothing from the start, at offsets the position is about to remember. */
export const countSettled = (
  { pairs, counters }: Partition,
  outcome: Outcome,
  amount: number,
): void => {
  pairs.opened += amount
  counters[outcome] += BigInt(amount)
}

/** From now on the position remembers what is settled below `until`: all that was taken so far. */
export const rememberPairs = ({ pairs, counters }: Partition, until: number): void => {
  if (until <= pairs.remembered) return
  pairs.remembered = until
  for (const outcome of outcomes) {
    if (pairs.ahead[outcome] === 0) continue
    counters[outcome] += BigInt(pairs.ahead[outcome])
    pairs.ahead[outcome] = 0
  }
}

export type Tally = {
  readonly counters: Counters
  /** Pairs settled, counted where offsets are opened, not where they are settled. */
  readonly consumed: bigint
  readonly inFlight: bigint
}

/** What the position would remember now. */
export const tallyPairs = ({ pairs, counters }: Partition): Tally => {
  let ahead = 0
  for (const outcome of outcomes) ahead += pairs.ahead[outcome]
  return {
    counters: { ...counters },
    consumed: pairs.before + BigInt(pairs.opened - pairs.owed - ahead),
    inFlight: BigInt(pairs.owed + ahead),
  }
}
