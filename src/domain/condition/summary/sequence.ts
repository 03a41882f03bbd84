// Whether a sequence of events is there: what is held of each step is all that may still be part of one.
import type { Sequence, Step } from '../condition.ts'
import { bucketOf, entryOf, expiryOf, type Window } from '../window.ts'
import { aliveFrom, isInside } from './buckets.ts'
import {
  type Chains,
  chainsOf,
  firstAfter,
  type Held,
  type Lists,
  type Start,
  type Starts,
} from './chain.ts'
import type { Kind } from './kind.ts'
import { readSequence, writeSequence } from './sequence-form.ts'

export type SequenceSummary = {
  readonly lists: Lists
  /** The newest first step known to have its chain, where that is all there is to know; else -1. */
  readonly settled: number
  /** Whether events went that may have mattered. */
  readonly isLost: boolean
}

/** Events held of one step; beyond it the oldest go. */
export const heldMax = 256

export const sequenceKind = (sequence: Sequence): Kind<SequenceSummary> => {
  const { steps, window } = sequence
  const chains = chainsOf(sequence)
  const nature = natureOf(sequence, chains)
  /** Of the summary asked last: it is asked several times, and then never again. */
  let known: { readonly lists: Lists; readonly starts: Starts } | null = null
  const startsOf = ({ lists }: SequenceSummary): Starts => {
    if (known?.lists !== lists) known = { lists, starts: chains.starts(lists, false) }
    return known.starts
  }
  return {
    empty: { lists: steps.map(() => []), settled: -1, isLost: false },
    fold: (summary, { te, properties }, step) => {
      if (te <= summary.settled || !canMatter(sequence, step, te)) return summary
      const newest = newestOf(summary)
      if (te < newest && te < aliveFrom(window, newest)) return summary
      const held = { te, values: chains.valuesOf(step, properties) }
      const list = inserted(summary.lists[step] as readonly Held[], held)
      if (list === null || nature.isUndone(held, step, summary.lists)) return summary
      const lists = nature.without(summary.lists.with(step, list), step, [held])
      // A chain that was not there before goes through this event.
      const { settled, isLost } = summary
      return nature.reduced({ lists, settled, isLost }, lists.with(step, [held]))
    },
    combine: (left, right) => {
      if (newestOf(left) < 0) return right
      if (newestOf(right) < 0) return left
      const lists = left.lists.map((list, step) => union(list, right.lists[step] ?? []))
      const last = steps.length - 1
      const combined = {
        lists: nature.without(lists, last, lists[last] as readonly Held[]),
        settled: Math.max(left.settled, right.settled),
        isLost: left.isLost || right.isLost,
      }
      return nature.reduced(combined, combined.lists)
    },
    write: (to, summary) => writeSequence(to, summary, chains),
    read: (from) => readSequence(from, steps.length, chains),
    valueAt: (summary, at) =>
      nature.isSettling
        ? summary.settled >= 0 && isOpen(summary.settled, window, at)
        : startsOf(summary).found.some(({ te, from }) => from <= at && isOpen(te, window, at)),
    nextChange: (summary, at) =>
      nature.isSettling
        ? settledUntil(summary, window, at)
        : firstTurn(openOf(startsOf(summary).found, window), at),
    capped: (summary) => summary.isLost || (!nature.isSettling && startsOf(summary).gaveUp),
  }
}

/** Whether there can be a chain with an event of this time at this step; only bounds of the calendar say no. */
const canMatter = ({ steps, window }: Sequence, step: number, te: number): boolean => {
  if (step === 0) return bucketOf(window, te) !== null
  if (window?.type !== 'fixed') return true
  const within = (sum: number, { withinMs }: Step) => sum + (withinMs ?? Number.POSITIVE_INFINITY)
  const reach = steps.slice(1, step + 1).reduce(within, 0)
  return te > (window.after ?? -1) && te < (window.before ?? Number.POSITIVE_INFINITY) + reach
}

type Nature = {
  /** Whether the newest first step with a chain says all: it stays in the window longest. */
  readonly isSettling: boolean
  /** Whether the event is of a step that a later one, which must not be, already undid. */
  isUndone(held: Held, step: number, lists: Lists): boolean
  /** Without what such later ones, new at `step`, undo. */
  without(lists: Lists, step: number, added: readonly Held[]): Lists
  /** Just what can still matter, as far as it is bounded; new chains are looked for among `searched`. */
  reduced(summary: SequenceSummary, searched: Lists): SequenceSummary
}

const natureOf = ({ steps, window }: Sequence, chains: Chains): Nature => {
  const last = steps.length - 1
  const isForbidden = steps[last]?.then === 'did_not'
  // Of a window of ages the newest may not be in yet.
  const isSettling = !isForbidden && window?.type !== 'ago'
  // Undone whatever the steps before it were.
  const isUndoing =
    isForbidden && steps[last]?.match.every(({ step }) => step === last - 1) === true
  const isUndoneBy = (held: Held, later: readonly Held[]) => {
    for (let at = firstAfter(later, held.te); at < later.length; at++)
      if (chains.follows(last, held, later[at] as Held)) return true
    return false
  }
  return {
    isSettling,
    isUndone: (held, step, lists) =>
      isUndoing && step === last - 1 && isUndoneBy(held, lists[last] as readonly Held[]),
    without: (lists, step, added) => {
      if (!isUndoing || step !== last) return lists
      const before = lists[last - 1] as readonly Held[]
      const left = before.filter((held) => !isUndoneBy(held, added))
      return left.length === before.length ? lists : lists.with(last - 1, left)
    },
    reduced: (summary, searched) => {
      const from = aliveFrom(window, newestOf(summary))
      const living = since(summary, from)
      if (!isSettling) return bounded(living)
      const searchedFrom = Math.max(living.settled, from - 1)
      return bounded(settle(living, after(searched, searchedFrom), chains))
    },
  }
}

/** Whether a first step of that time is in the window. */
const isOpen = (te: number, window: Window | null, at: number): boolean =>
  isInside(window, bucketOf(window, te) as number, at)

/** Where the newest first step says all, it holds until that is out of the window. */
const settledUntil = ({ settled }: SequenceSummary, window: Window | null, at: number): number => {
  const until = settled < 0 ? at : expiryOf(window, bucketOf(window, settled) as number)
  return until > at ? until : Number.POSITIVE_INFINITY
}

/** Before the newest first step that has a chain, nothing matters. */
const settle = (summary: SequenceSummary, searched: Lists, chains: Chains): SequenceSummary => {
  const { settled: before, isLost } = summary
  const open = { lists: after(summary.lists, before), settled: before, isLost }
  if (searched.some((list) => list.length === 0)) return open
  const { found, gaveUp } = chains.starts(searched, true)
  const settled = found[0]?.te ?? open.settled
  return { lists: after(open.lists, settled), settled, isLost: open.isLost || gaveUp }
}

/** Without what was before an instant. */
const since = ({ lists, settled, isLost }: SequenceSummary, from: number): SequenceSummary => ({
  lists: after(lists, from - 1),
  settled: settled < from ? -1 : settled,
  isLost,
})

const after = (lists: Lists, te: number): Lists =>
  lists.every((list) => list.length === 0 || (list[0] as Held).te > te)
    ? lists
    : lists.map((list) => list.slice(firstAfter(list, te)))

const bounded = (summary: SequenceSummary): SequenceSummary =>
  summary.lists.every((list) => list.length <= heldMax)
    ? summary
    : { ...summary, lists: summary.lists.map((list) => list.slice(-heldMax)), isLost: true }

/** -1 before there is one. */
const newestOf = ({ lists, settled }: SequenceSummary): number => {
  let newest = settled
  for (const list of lists) newest = Math.max(newest, list[list.length - 1]?.te ?? -1)
  return newest
}

/** `null` where there is one like it: no answer depends on how many there are. */
const inserted = (list: readonly Held[], held: Held): readonly Held[] | null => {
  let at = firstAfter(list, held.te)
  if (list[at - 1]?.te !== held.te) return list.toSpliced(at, 0, held)
  const text = JSON.stringify(held.values)
  for (; list[at - 1]?.te === held.te; at--) {
    const other = JSON.stringify(list[at - 1]?.values)
    if (other === text) return null
    if (other < text) break
  }
  return list.toSpliced(at, 0, held)
}

const union = (left: readonly Held[], right: readonly Held[]): readonly Held[] =>
  right.reduce((list, held) => inserted(list, held) ?? list, left)

type Interval = { readonly from: number; readonly until: number }

/** When each start is what makes the sequence hold. */
const openOf = (starts: readonly Start[], window: Window | null): readonly Interval[] =>
  starts
    .map(({ te, from }) => {
      const bucket = bucketOf(window, te) as number
      return { from: Math.max(from, entryOf(window, bucket)), until: expiryOf(window, bucket) }
    })
    .filter(({ from, until }) => from < until)

/** The first instant after `at` at which the union of intervals begins or ends. */
const firstTurn = (intervals: readonly Interval[], at: number): number => {
  let end = at
  for (let isLonger = true; isLonger; ) {
    isLonger = false
    for (const { from, until } of intervals)
      if (from <= end && until > end) [end, isLonger] = [until, true]
  }
  if (end > at) return end
  let first = Number.POSITIVE_INFINITY
  for (const { from } of intervals) if (from > at) first = Math.min(first, from)
  return first
}
