// Deciding whether a user is in an audience at an instant, and when time alone may change that.

import type { Json, JsonObject } from '../message.ts'
import type { Condition, EventSpec, Filter, Measure, OrderOperator } from './condition.ts'
import { countNeed, type LeafNeed, measureNeed, sequenceNeed } from './leaf.ts'
import { reaches, type Threshold } from './summary/count.ts'
import type { Kind, Summary } from './summary/kind.ts'
import {
  type Comparison,
  compare,
  passes,
  type Ref,
  type Seen,
  type Test,
  valueAt,
} from './value.ts'

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
  leaf.kind.valueAt(summaryNow(leaf, facts) ?? leaf.kind.empty, at)

/** What counts as the user's traits are. */
const summaryNow = (leaf: BoundLeaf, facts: Facts): Summary | undefined => {
  const summary = facts.summary(leaf)
  if (summary === undefined || leaf.kind.narrow === undefined) return summary
  return leaf.kind.narrow(summary, facts.traits())
}

/** The first instant after `at` at which time alone may change the value. */
export const leafTurns = (leaf: BoundLeaf, facts: Facts, at: number): number => {
  const summary = summaryNow(leaf, facts)
  return summary === undefined ? Number.POSITIVE_INFINITY : leaf.kind.nextChange(summary, at)
}

export const holds = (condition: BoundCondition, facts: Facts, at: number): boolean => {
  switch (condition.type) {
    case 'all':
      for (const child of condition.of) if (!holds(child, facts, at)) return false
      return true
    case 'any':
      for (const child of condition.of) if (holds(child, facts, at)) return true
      return false
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
      const left = leafValue(condition.left, facts, at)
      const right = leafValue(condition.right, facts, at)
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

const refersToTrait = (comparison: Comparison, refLeaf: RefLeaf): boolean =>
  'ref' in comparison &&
  (comparison.ref.type === 'trait' || (refLeaf !== null && asksTraits(refLeaf)))

/** Whether another trait can change what is made of the events. */
export const asksTraits = ({ kind }: BoundLeaf): boolean => kind.narrow !== undefined

export const readsTraits = (condition: BoundCondition): boolean => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.some(readsTraits)
    case 'not':
      return readsTraits(condition.of)
    case 'trait':
      return true
    case 'count':
      return asksTraits(condition.leaf)
    case 'measure':
      return asksTraits(condition.leaf) || refersToTrait(condition.comparison, condition.refLeaf)
    case 'compare':
      return asksTraits(condition.left) || asksTraits(condition.right)
    case 'identified':
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
