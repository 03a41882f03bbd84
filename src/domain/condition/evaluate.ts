// Deciding whether a user is in an audience at an instant, and when time alone may change that.

import type { Json, JsonObject } from '../message.ts'
import type { Condition, EventSpec, Filter, Measure, OrderOperator } from './condition.ts'
import { countNeed, type LeafNeed, measureNeed, sequenceNeed } from './leaf.ts'
import { type CountSummary, reaches, type Threshold, turningBucket } from './summary/count.ts'
import type { Kind, Summary } from './summary/kind.ts'
import {
  type Comparison,
  compare,
  comparisonTurns,
  passes,
  type Ref,
  type Seen,
  type Test,
  turnsAfter,
  valueAt,
} from './value.ts'
import { expiryOf, tailOf } from './window.ts'

/** A leaf as it is kept: under which id, and how it is asked. */
export type BoundLeaf = { readonly id: number; readonly kind: Kind<Summary> }

/** A condition whose leaves are bound to the ids their summaries are kept under. */
export type BoundCondition =
  | { readonly type: 'all' | 'any'; readonly of: readonly BoundCondition[] }
  | { readonly type: 'not'; readonly of: BoundCondition }
  | { readonly type: 'identified' }
  | { readonly type: 'trait'; readonly test: Test; readonly refLeaf: RefLeaf }
  | {
      readonly type: 'count'
      readonly leaf: BoundLeaf
      readonly events: EventSpec
      readonly threshold: Threshold
    }
  | {
      readonly type: 'measure'
      readonly leaf: BoundLeaf
      readonly comparison: Comparison
      readonly refLeaf: RefLeaf
    }
  | {
      readonly type: 'compare'
      readonly left: BoundLeaf
      readonly op: OrderOperator
      readonly right: BoundLeaf
    }
  | { readonly type: 'sequence'; readonly leaf: BoundLeaf }

/** The leaf of the measure that a comparison refers to, if it does. */
type RefLeaf = BoundLeaf | null

/** What is known of one user. */
export type Facts = {
  readonly identified: boolean
  readonly traits: () => JsonObject
  readonly summary: (leaf: BoundLeaf) => Summary | undefined
}

export type LeafFinder = (need: LeafNeed) => BoundLeaf | null

/** `null` when a leaf has no id yet. */
export const bind = (condition: Condition, find: LeafFinder): BoundCondition | null => {
  switch (condition.type) {
    case 'all':
    case 'any': {
      const of = condition.of.map((child) => bind(child, find))
      return of.includes(null)
        ? null
        : { type: condition.type, of: of as readonly BoundCondition[] }
    }
    case 'not': {
      const of = bind(condition.of, find)
      return of === null ? null : { type: 'not', of }
    }
    case 'identified':
      return condition
    case 'trait': {
      const refLeaf = bindRef(condition.test.comparison, find)
      return refLeaf === undefined ? null : { ...condition, refLeaf }
    }
    case 'count': {
      const leaf = find(countNeed(condition.events, condition.threshold.value + 1))
      return leaf === null ? null : { ...condition, leaf }
    }
    case 'measure': {
      const leaf = find(measureNeed(condition.measure))
      const refLeaf = bindRef(condition.comparison, find)
      return leaf === null || refLeaf === undefined
        ? null
        : { type: 'measure', leaf, comparison: condition.comparison, refLeaf }
    }
    case 'compare': {
      const [left, right] = [bindMeasure(condition.left, find), bindMeasure(condition.right, find)]
      return left === null || right === null
        ? null
        : { type: 'compare', left, op: condition.op, right }
    }
    case 'sequence': {
      const leaf = find(sequenceNeed(condition.sequence))
      return leaf === null ? null : { type: 'sequence', leaf }
    }
  }
}

export const bindMeasure = (measure: Measure, find: LeafFinder): BoundLeaf | null =>
  find(measureNeed(measure))

/** `undefined` when the leaf has no id yet, `null` when there is nothing to bind. */
const bindRef = (comparison: Comparison, find: LeafFinder): RefLeaf | undefined => {
  if (!('ref' in comparison) || comparison.ref.type !== 'measure') return null
  return find(measureNeed(comparison.ref.measure)) ?? undefined
}

export const leafValue = (leaf: BoundLeaf, facts: Facts, at: number): Json | undefined =>
  leaf.kind.valueAt(facts.summary(leaf) ?? leaf.kind.empty, at)

/** The first instant after `at` at which time alone may change the value. */
export const leafTurns = (leaf: BoundLeaf, facts: Facts, at: number): number => {
  const summary = facts.summary(leaf)
  return summary === undefined ? Number.POSITIVE_INFINITY : leaf.kind.nextChange(summary, at)
}

export const holds = (condition: BoundCondition, facts: Facts, at: number): boolean => {
  switch (condition.type) {
    case 'all':
      return condition.of.every((child) => holds(child, facts, at))
    case 'any':
      return condition.of.some((child) => holds(child, facts, at))
    case 'not':
      return !holds(condition.of, facts, at)
    case 'identified':
      return facts.identified
    case 'trait':
      return passes(condition.test, facts.traits(), seenOf(condition.refLeaf, facts, at))
    case 'count':
      return reaches(condition.threshold, leafValue(condition.leaf, facts, at) as number)
    case 'measure': {
      const { leaf, comparison, refLeaf } = condition
      return compare(comparison, leafValue(leaf, facts, at), seenOf(refLeaf, facts, at))
    }
    case 'compare': {
      const [left, right] = [condition.left, condition.right].map((leaf) =>
        leafValue(leaf, facts, at),
      )
      const comparison = { op: condition.op, value: right as never, foldCase: false }
      return right !== undefined && compare(comparison, left, seenOf(null, facts, at))
    }
    case 'sequence':
      return leafValue(condition.leaf, facts, at) === true
  }
}

const seenOf = (leaf: RefLeaf, facts: Facts, at: number): Seen => ({
  at,
  ref: (ref: Ref) => {
    if (ref.type === 'trait') return valueAt(facts.traits(), ref.path)
    return leaf === null ? undefined : leafValue(leaf, facts, at)
  },
})

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
  if (window.type === 'ago')
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

const refLeafId = (leaf: RefLeaf): readonly number[] => (leaf === null ? [] : [leaf.id])

export const leafIdsOf = (condition: BoundCondition): readonly number[] => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.flatMap(leafIdsOf)
    case 'not':
      return leafIdsOf(condition.of)
    case 'identified':
      return []
    case 'trait':
      return refLeafId(condition.refLeaf)
    case 'count':
    case 'sequence':
      return [condition.leaf.id]
    case 'measure':
      return [condition.leaf.id, ...refLeafId(condition.refLeaf)]
    case 'compare':
      return [condition.left.id, condition.right.id]
  }
}

const refersToTrait = (comparison: Comparison): boolean =>
  'ref' in comparison && comparison.ref.type === 'trait'

export const readsTraits = (condition: BoundCondition): boolean => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.some(readsTraits)
    case 'not':
      return readsTraits(condition.of)
    case 'trait':
      return true
    case 'measure':
      return refersToTrait(condition.comparison)
    case 'identified':
    case 'count':
    case 'compare':
    case 'sequence':
      return false
  }
}

/** Filters of events look at the event alone: the same whenever it is folded. */
const nothingSeen: Seen = { at: 0, ref: () => undefined }

export const admits = (filter: Filter, properties: Json | undefined): boolean => {
  switch (filter.type) {
    case 'all':
      return filter.of.every((child) => admits(child, properties))
    case 'any':
      return filter.of.some((child) => admits(child, properties))
    case 'not':
      return !admits(filter.of, properties)
    case 'prop':
      return passes(filter.test, properties, nothingSeen)
  }
}
