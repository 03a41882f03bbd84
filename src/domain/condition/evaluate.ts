// Deciding whether a user is in an audience at an instant, and when time alone may change that.

import type { Json, JsonObject } from '../message.ts'
import type { Condition, EventSpec, Filter } from './condition.ts'
import { leafHash } from './leaf.ts'
import {
  type CountSummary,
  countAbove,
  emptyCount,
  reaches,
  type Threshold,
  turningBucket,
} from './summary.ts'
import { passes, type Test } from './value.ts'
import { expiryOf, tailOf } from './window.ts'

/** A condition whose leaves are bound to the ids their summaries are kept under. */
export type BoundCondition =
  | { readonly type: 'all' | 'any'; readonly of: readonly BoundCondition[] }
  | { readonly type: 'not'; readonly of: BoundCondition }
  | { readonly type: 'trait'; readonly test: Test }
  | {
      readonly type: 'count'
      readonly leafId: number
      readonly events: EventSpec
      readonly threshold: Threshold
    }

/** What is known of one user. */
export type Facts = {
  readonly traits: () => JsonObject
  readonly summary: (leafId: number) => CountSummary | undefined
}

/** `null` when a leaf has no id yet. */
export const bind = (
  condition: Condition,
  leafIdOf: (hash: string, keep: number) => number | null,
): BoundCondition | null => {
  switch (condition.type) {
    case 'all':
    case 'any': {
      const of = condition.of.map((child) => bind(child, leafIdOf))
      return of.includes(null)
        ? null
        : { type: condition.type, of: of as readonly BoundCondition[] }
    }
    case 'not': {
      const of = bind(condition.of, leafIdOf)
      return of === null ? null : { type: 'not', of }
    }
    case 'trait':
      return condition
    case 'count': {
      const leafId = leafIdOf(leafHash(condition.events), condition.threshold.value + 1)
      return leafId === null ? null : { ...condition, leafId }
    }
  }
}

export const holds = (condition: BoundCondition, facts: Facts, at: number): boolean => {
  switch (condition.type) {
    case 'all':
      return condition.of.every((child) => holds(child, facts, at))
    case 'any':
      return condition.of.some((child) => holds(child, facts, at))
    case 'not':
      return !holds(condition.of, facts, at)
    case 'trait':
      return passes(condition.test, facts.traits())
    case 'count': {
      const summary = facts.summary(condition.leafId) ?? emptyCount
      return reaches(condition.threshold, countAbove(summary, tailOf(condition.events.window, at)))
    }
  }
}

/**
 * The first instant after `at` at which a comparison turns over without any event, `Infinity` for never.
 * It lies on the window's grid, which is the rounding: a later instant would be wrong at a sync between.
 */
export const nextChange = (condition: BoundCondition, facts: Facts, at: number): number => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return Math.min(...condition.of.map((child) => nextChange(child, facts, at)))
    case 'not':
      return nextChange(condition.of, facts, at)
    case 'trait':
      return Number.POSITIVE_INFINITY
    case 'count': {
      const { events, threshold } = condition
      const summary = facts.summary(condition.leafId)
      if (events.window === null || summary === undefined) return Number.POSITIVE_INFINITY
      const bucket = turningBucket(summary, tailOf(events.window, at), threshold)
      return bucket === null ? Number.POSITIVE_INFINITY : expiryOf(events.window, bucket)
    }
  }
}

export const leafIdsOf = (condition: BoundCondition): readonly number[] => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.flatMap(leafIdsOf)
    case 'not':
      return leafIdsOf(condition.of)
    case 'trait':
      return []
    case 'count':
      return [condition.leafId]
  }
}

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
      return false
  }
}

export const admits = (filter: Filter, properties: Json | undefined): boolean => {
  switch (filter.type) {
    case 'all':
      return filter.of.every((child) => admits(child, properties))
    case 'any':
      return filter.of.some((child) => admits(child, properties))
    case 'not':
      return !admits(filter.of, properties)
    case 'prop':
      return passes(filter.test, properties)
  }
}
