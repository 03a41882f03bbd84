// Parsing values made of events, and what they are compared with: a literal, a trait or each other.
import {
  type Allowed,
  comparisonAt,
  type Operator,
  operators,
  singlePathAt,
  traitRefAt,
} from './comparison.ts'
import {
  type Condition,
  conditionLimits,
  type Measure,
  type OrderOperator,
  orderOperators,
  type Reduce,
} from './condition.ts'
import { kindOf, parseEvents } from './parse-events.ts'
import { timezoneAt } from './parse-window.ts'
import type { Reading } from './reading.ts'
import type { CountOperator } from './summary/count.ts'
import { listOperators, presenceOperators, type Ref, textOperators } from './value.ts'

const reducers = [
  ...(['count', 'sum', 'avg', 'min', 'max', 'first', 'last'] as const),
  ...(['distinct', 'unique', 'mode', 'distinct_days'] as const),
]

type Reducer = (typeof reducers)[number]

const countOperators: readonly CountOperator[] = ['gte', 'gt', 'eq', 'lte', 'lt']
const numberOperators: readonly Operator[] = [...orderOperators, 'one_of', 'none_of']
const listValueOperators: readonly Operator[] = [
  ...presenceOperators,
  ...textOperators,
  'matches',
  ...listOperators.filter((op) => op.startsWith('contains_')),
]

/** Of what it makes; a count, a sum and the numbers of different things are never missing. */
const operatorsOf: Readonly<Record<Exclude<Reducer, 'count'>, readonly Operator[]>> = {
  sum: numberOperators,
  distinct: numberOperators,
  distinct_days: numberOperators,
  avg: [...numberOperators, ...presenceOperators],
  min: [...numberOperators, ...presenceOperators],
  max: [...numberOperators, ...presenceOperators],
  first: operators,
  last: operators,
  mode: operators,
  unique: listValueOperators,
}

const numeric: readonly Reducer[] = [
  ...(['count', 'sum', 'avg', 'min', 'max'] as const),
  ...(['distinct', 'distinct_days'] as const),
]

/** {"event", <reducer>: {"op", "value" or "ref"}} */
export const parseMeasured = (at: Reading): Condition | null => {
  const reducer = reducerAt(at)
  if (reducer === null) return null
  at.leaf()
  const [events, made] = [parseEvents(at.in('event')), at.in(reducer)]
  if (made.object() === null) return null
  if (reducer === 'count' && !made.in('ref').given()) {
    made.only(['op', 'value'])
    const op = made.in('op').oneOf(countOperators)
    const value = made.in('value').integer(0, conditionLimits.countMax)
    if (events === null || op === null || value === null) return null
    return { type: 'count', events, threshold: { op, value } }
  }
  const reduce = reduceAt(made, reducer)
  const comparison = comparisonAt(made, {
    keys: keysOf(reducer),
    operators: reducer === 'count' ? orderOperators : operatorsOf[reducer],
    ref: refAt,
    numeric: numeric.includes(reducer),
  } satisfies Allowed)
  if (events === null || reduce === null || comparison === null) return null
  const measure = { events, reduce }
  // Said in two ways, it is one condition.
  return 'ref' in comparison && comparison.ref.type === 'measure' && !comparison.foldCase
    ? { type: 'compare', op: comparison.op, left: measure, right: comparison.ref.measure }
    : { type: 'measure', measure, comparison }
}

/** {"event", <reducer>: {…}} without a comparison. */
export const parseMeasureAt = (at: Reading): Measure | null => {
  const reducer = at.object() === null ? null : reducerAt(at)
  if (reducer === null) return null
  at.leaf()
  const [events, made] = [parseEvents(at.in('event')), at.in(reducer)]
  if (made.object() === null) return null
  made.only(keysOf(reducer))
  const reduce = reduceAt(made, reducer)
  return events === null || reduce === null ? null : { events, reduce }
}

/** What is wrong with the events is told even where nothing is made of them. */
const reducerAt = (at: Reading): Reducer | null => {
  const node = at.object()
  if (node === null) return null
  at.only(['event', ...reducers])
  const reducer = kindOf(at, node, reducers)
  if (reducer === null) parseEvents(at.in('event'))
  return reducer
}

const keysOf = (reducer: Reducer): readonly string[] => {
  if (reducer === 'count') return []
  if (reducer === 'distinct_days') return ['timezone']
  return reducer === 'mode' ? ['prop', 'min_frequency'] : ['prop']
}

const frequencyDefault = 2
const frequencyMax = 10_000

const reduceAt = (at: Reading, reducer: Reducer): Reduce | null => {
  if (reducer === 'count') return { type: 'count' }
  if (reducer === 'distinct_days') {
    const timezone = timezoneAt(at.in('timezone'))
    return timezone === null ? null : { type: reducer, timezone }
  }
  const path = singlePathAt(at.in('prop'))
  if (reducer !== 'mode') return path === null ? null : { type: reducer, path }
  const frequency = at.in('min_frequency')
  const minFrequency = frequency.given() ? frequency.integer(1, frequencyMax) : frequencyDefault
  return path === null || minFrequency === null ? null : { type: reducer, path, minFrequency }
}

/** {"compare": [measure, measure], "op"} */
export const parseCompare = (at: Reading): Condition | null => {
  at.only(['compare', 'op'])
  const op: OrderOperator | null = at.in('op').oneOf(orderOperators)
  const sides = at.in('compare').list()
  if (sides !== null && sides.length !== 2) return at.in('compare').refuse('expected two measures')
  const [left, right] = (sides ?? []).map(sideAt)
  if (op === null || !left || !right) return null
  return { type: 'compare', op, left, right }
}

const sideAt = (at: Reading): Measure | null => {
  const measure = parseMeasureAt(at)
  return measure?.reduce.type === 'unique'
    ? at.in('unique').refuse('expected one value: the number of different ones is "distinct"')
    : measure
}

/** "trait:plan.tier", {"trait": path} or a measure. */
export const refAt = (at: Reading): Ref | null => {
  const trait = traitRefAt(at)
  if (trait !== undefined) return trait
  const { value } = at
  if (typeof value !== 'object' || value === null)
    return at.refuse('expected "trait:…", "computed:…" or a measure to compare with')
  const measure = sideAt(at)
  return measure === null ? null : { type: 'measure', measure }
}
