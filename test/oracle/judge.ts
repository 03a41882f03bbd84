// The naive evaluator of one person: whether their calls satisfy a condition, and what a measure makes of them.
import { happened, matches, type Seen, traitsAt } from './events.ts'
import type { Audience, Condition, Filter, Measure, Ref, Referring } from './language.ts'
import type { Call } from './people.ts'
import { type Happened, type Reducer, reduce, reducers } from './reduce.ts'
import { isThere, type Sequence, type SequenceStep } from './sequence.ts'
import { windowTest } from './time.ts'
import {
  type Comparison,
  compares,
  isScalar,
  type Json,
  type Path,
  passes,
  valueAt,
} from './values.ts'

/** What a condition is read in: time zone of the whole, and whom it may refer to. */
export type Scope = {
  readonly zone: string
  readonly others: readonly Audience[]
  readonly identified: boolean
}
export type At<T> = (at: number) => T

const alone: Scope = { zone: 'UTC', others: [], identified: true }

/** Whether one person's calls satisfy the condition at an instant; only calls received by then count. */
export const judgeOf = (
  condition: Condition,
  calls: readonly Call[],
  scope: Scope = alone,
): At<boolean> => {
  const judge = (part: Condition) => judgeOf(part, calls, scope)
  if ('all' in condition) {
    const parts = condition.all.map(judge)
    return (at) => parts.every((part) => part(at))
  }
  if ('any' in condition) {
    const parts = condition.any.map(judge)
    return (at) => parts.some((part) => part(at))
  }
  if ('not' in condition) {
    const part = judge(condition.not)
    return (at) => !part(at)
  }
  if ('identified' in condition) return () => scope.identified
  if ('audience' in condition) {
    const part = memberOf(named(condition.audience, scope), calls, scope)
    return (at) => part(at) === (condition.in ?? true)
  }
  if ('trait' in condition) {
    const test = withRef(condition, calls, scope)
    return (at) =>
      test(at, (it) =>
        passes({ ...it, path: condition.trait }, traitsAt(calls, at), { at, zone: scope.zone }),
      )
  }
  if ('computed' in condition) {
    const trait = named(condition.computed, scope)
    const zone = trait.timezone ?? 'UTC'
    const value = measured(trait.condition as Measure, calls, { ...scope, zone })
    const test = withRef(condition, calls, scope)
    return (at) => test(at, (it) => compares(it, value(at), { at, zone }))
  }
  if ('compare' in condition) {
    const [left, right] = condition.compare.map((it) => measured(it, calls, scope))
    return (at) => {
      const value = right?.(at)
      return isScalar(value) && compares({ op: condition.op, value }, left?.(at))
    }
  }
  if ('sequence' in condition) return sequenceJudge(condition.sequence, calls, scope)
  if (!('event' in condition))
    throw new Error(`the oracle does not know the condition ${JSON.stringify(condition)}`)
  const value = measured(condition, calls, scope)
  const comparison = condition[reducerOf(condition)] as Referring
  const test = withRef(comparison, calls, scope)
  return (at) => test(at, (it) => compares(it, value(at), { at, zone: scope.zone }))
}

const named = (key: string, { others }: Scope): Audience => {
  const found = others.find((it) => it.key === key)
  if (!found) throw new Error(`the oracle knows nothing called ${key}`)
  return found
}

export const memberOf = (audience: Audience, calls: readonly Call[], scope: Scope): At<boolean> => {
  const judge = judgeOf(audience.condition as Condition, calls, {
    ...scope,
    zone: audience.timezone ?? 'UTC',
  })
  return (at) => judge(at) && (scope.identified || audience.includeAnonymous !== false)
}

const reducerOf = (measure: Measure): Reducer =>
  reducers.find((reducer) => measure[reducer] !== undefined) as Reducer

type Passes = (comparison: Comparison) => boolean

/** With what `ref` is at the instant in the place of the literal; nothing compares with a missing value. */
const withRef = (comparison: Referring, calls: readonly Call[], scope: Scope) => {
  const { ref } = comparison
  if (ref === undefined) return (_: number, test: Passes) => test(comparison)
  const valueAtInstant = refOf(ref, calls, scope)
  return (at: number, test: Passes) => {
    const value = valueAtInstant(at)
    return isScalar(value) && test({ ...comparison, value })
  }
}

const refOf = (ref: Ref, calls: readonly Call[], scope: Scope): At<Json | undefined> => {
  if (typeof ref === 'object' && 'event' in ref) return measured(ref, calls, scope)
  const [kind, ...rest] = typeof ref === 'string' ? ref.split(':') : []
  if (kind !== 'computed') {
    const path = typeof ref === 'string' ? rest.join(':') : (ref as { trait: Path }).trait
    return (at) => valueAt(traitsAt(calls, at), path)
  }
  const { condition, timezone: zone = 'UTC' } = named(rest.join(':'), scope)
  return measured(condition as Measure, calls, { ...scope, zone })
}

export const measured = (
  measure: Measure,
  calls: readonly Call[],
  { zone }: Scope = alone,
): At<Json | undefined> => {
  const { name, where } = measure.event
  const isMoving = JSON.stringify(where ?? {}).includes('"ref"')
  const events = happened(isMoving ? { name } : measure.event, calls, zone)
  /** What is compared with traits is compared with those of the instant. */
  const passing = (seen: readonly Seen[], at: number) => {
    if (!isMoving || where === undefined) return seen
    const traits = traitsAt(calls, at)
    return seen.filter(({ properties }) => matches(where, properties, { zone, traits }))
  }
  const isIn = windowTest(measure.event.window, zone)
  const reducer = reducerOf(measure)
  const how = { timezone: zone, ...measure[reducer] }
  return (at) =>
    reduce(
      reducer,
      how,
      passing(
        events.filter(({ te, receivedAt }) => receivedAt <= at && te <= at && isIn(te, at)),
        at,
      ),
    )
}

const sequenceJudge = (
  sequence: Sequence<Filter>,
  calls: readonly Call[],
  { zone }: Scope,
): At<boolean> => {
  const isIn = windowTest(sequence.window, zone)
  const found = sequence.steps.map(({ event }) => happened({ name: event.name }, calls, zone))
  return (at) => {
    const eventsOf = ({ event }: SequenceStep<Filter>, chain: readonly Happened[]) => {
      const chosen = (label: string) =>
        chain[sequence.steps.findIndex(({ as }) => as === label)]?.properties
      return (found[chain.length] as readonly Seen[]).filter(
        ({ receivedAt, properties }) =>
          receivedAt <= at &&
          (event.where === undefined || matches(event.where, properties, { zone, chosen })),
      )
    }
    return isThere(sequence, { eventsOf, isIn }, at)
  }
}
