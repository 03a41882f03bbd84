// The condition of an audience, parsed: everything it may say. parse.ts makes it of JSON, text/ of the query form.
import type { Threshold } from './summary/count.ts'
import type { Comparison, Path, Test } from './value.ts'
import type { Window } from './window.ts'

export type Condition =
  | { readonly type: 'all' | 'any'; readonly of: readonly Condition[] }
  | { readonly type: 'not'; readonly of: Condition }
  | { readonly type: 'trait'; readonly test: Test }
  | { readonly type: 'count'; readonly events: EventSpec; readonly threshold: Threshold }
  /** What a reducer makes of events, compared with a literal or another fact of the user. */
  | { readonly type: 'measure'; readonly measure: Measure; readonly comparison: Comparison }
  | {
      readonly type: 'compare'
      readonly op: OrderOperator
      readonly left: Measure
      readonly right: Measure
    }
  | { readonly type: 'sequence'; readonly sequence: Sequence }
  /** Whether the user has a user id. */
  | { readonly type: 'identified' }

export const orderOperators = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte'] as const
export type OrderOperator = (typeof orderOperators)[number]

export type EventSpec = {
  readonly name: string
  readonly where: Filter | null
  readonly window: Window | null
}

/** On the properties of one event, and the traits they are compared with. */
export type Filter =
  | { readonly type: 'all' | 'any'; readonly of: readonly Filter[] }
  | { readonly type: 'not'; readonly of: Filter }
  | { readonly type: 'prop'; readonly test: Test }

/** A value made of a user's events. */
export type Measure = { readonly events: EventSpec; readonly reduce: Reduce }

export type Reduce =
  | { readonly type: 'count' }
  /** Local calendar days with at least one event. */
  | { readonly type: 'distinct_days'; readonly timezone: string }
  | {
      readonly type: 'sum' | 'avg' | 'min' | 'max' | 'first' | 'last' | 'distinct' | 'unique'
      readonly path: Path
    }
  /** The most frequent value; of equals the smallest by code point. */
  | { readonly type: 'mode'; readonly path: Path; readonly minFrequency: number }

/** Events one strictly after the other, each within its time after the one before. */
export type Sequence = {
  /** In which the first step must lie; later ones may lie after it. */
  readonly window: Window | null
  /** Whether "did not" holds while its time still runs. */
  readonly settle: 'immediate' | 'after_deadline'
  /** Two or more. */
  readonly steps: readonly Step[]
}

export type Step = {
  readonly name: string
  readonly where: Filter | null
  /** `did` for the first; only the last may be `did_not`. */
  readonly then: 'did' | 'did_not'
  /** After the step before it; `null` for the first, and where any later time will do. */
  readonly withinMs: number | null
  /** Comparisons of this step's properties with those of an earlier one. */
  readonly match: readonly Match[]
}

export type Match = {
  readonly path: Path
  readonly op: OrderOperator
  /** Which step, from 0, and which of its properties. */
  readonly step: number
  readonly of: Path
}

/** `path` says where, as in `all[0].event.window`; empty for the condition itself. */
export type Problem = { readonly path: string; readonly message: string }

export type Parsed =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export const conditionLimits = {
  /** Nesting of all, any and not. */
  depthMax: 50,
  /** Comparisons in one condition. */
  leavesMax: 200,
  /** The N of a count: a windowed leaf keeps up to N + 1 buckets for each user. */
  countMax: 1_000,
  /** Steps of one sequence. */
  stepsMax: 8,
}
