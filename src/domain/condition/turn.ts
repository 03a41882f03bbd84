// When time alone changes whether a user is in an audience.
import {
  type BoundCondition,
  type BoundLeaf,
  type Facts,
  holds,
  leafTurns,
  leafValue,
} from './evaluate.ts'
import { type CountSummary, turningBucket } from './summary/count.ts'
import { comparisonTurns, turnsAfter } from './value.ts'
import { expiryOf, tailOf } from './window.ts'

/**
 * The first instant after `at` at which a comparison turns over without any event, `Infinity` for never.
 * It lies on the window's grid, which is the rounding: a later instant would be wrong at a sync between.
 */
export const nextChange = (condition: BoundCondition, facts: Facts, at: number): number =>
  changeWithin(condition, facts, { at, until: Number.POSITIVE_INFINITY })

/** Instants from `until` on are nobody's concern: any of them stands for all. */
type Span = { readonly at: number; readonly until: number }

/** As `nextChange` where that is before `until`; otherwise some instant that is not. */
export const changeWithin = (condition: BoundCondition, facts: Facts, span: Span): number => {
  switch (condition.type) {
    case 'all':
    case 'any': {
      let first = Number.POSITIVE_INFINITY
      for (const child of condition.of) first = Math.min(first, changeWithin(child, facts, span))
      return first
    }
    case 'not':
      return changeWithin(condition.of, facts, span)
    case 'identified':
      return Number.POSITIVE_INFINITY
    case 'trait':
      return Math.min(
        turnsAfter(condition.test, facts.traits(), span.at),
        condition.refLeaf === null
          ? Number.POSITIVE_INFINITY
          : turnOf(condition, [condition.refLeaf], { facts, span }),
      )
    case 'count':
      return countTurns(condition, facts, span)
    case 'measure': {
      const { leaf, refLeaf } = condition
      return turnOf(condition, refLeaf === null ? [leaf] : [leaf, refLeaf], { facts, span })
    }
    case 'compare':
      return turnOf(condition, [condition.left, condition.right], { facts, span })
    case 'sequence':
      return turnOf(condition, [condition.leaf], { facts, span })
  }
}

/** The commonest of all: its buckets are walked once. */
const countTurns = (
  { leaf, events, threshold }: Extract<BoundCondition, { type: 'count' }>,
  facts: Facts,
  span: Span,
): number => {
  const { window } = events
  const summary = facts.summary(leaf) as CountSummary | undefined
  if (window === null || summary === undefined) return Number.POSITIVE_INFINITY
  if (window.type === 'ago' || leaf.kind.narrow !== undefined)
    return turnOf({ type: 'count', leaf, events, threshold }, [leaf], { facts, span })
  const bucket = turningBucket(summary, tailOf(window, span.at), threshold)
  return bucket === null ? Number.POSITIVE_INFINITY : expiryOf(window, bucket)
}

/** More instants than this are not tried for one: the next look goes on from there. */
const turnsTriedMax = 64

/** Goes from change to change of the values until the answer is another one. */
const turnOf = (
  condition: BoundCondition,
  leaves: readonly BoundLeaf[],
  { facts, span: { at, until } }: { readonly facts: Facts; readonly span: Span },
): number => {
  let now: boolean | null = null
  let turn = at
  for (let tried = 0; tried < turnsTriedMax; tried++) {
    let next = dateTurns(condition, facts, turn)
    for (const leaf of leaves) next = Math.min(next, leafTurns(leaf, facts, turn))
    turn = next
    if (turn >= until || turn === Number.POSITIVE_INFINITY) return turn
    now ??= holds(condition, facts, at)
    if (holds(condition, facts, turn) !== now) return turn
  }
  return turn
}

/** Of a value that is a date: when it comes to lie otherwise to the instant asked at. */
const dateTurns = (condition: BoundCondition, facts: Facts, at: number): number =>
  condition.type === 'measure' && 'ms' in condition.comparison
    ? comparisonTurns(condition.comparison, leafValue(condition.leaf, facts, at), at)
    : Number.POSITIVE_INFINITY
