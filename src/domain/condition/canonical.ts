// One text for conditions that say the same: it names leaves, and tells a real edit from a rewording.
import type {
  Condition,
  EventSpec,
  Filter,
  Match,
  Measure,
  OrderOperator,
  Reduce,
  Sequence,
  Step,
} from './condition.ts'
import type { Comparison, Path, Ref, Test } from './value.ts'
import type { Window } from './window.ts'

/**
 * Equal for conditions that say the same in another wording: children in another order or twice, groups
 * within groups of their kind or of one, a negation negated, a comparison read from its other side. All of
 * these hold in two-valued logic. Different for all that differs otherwise: every part is JSON or bracketed.
 */
export const canonicalText = (condition: Condition): string => textOf(saidBy(condition))

type Said =
  | { readonly type: 'all' | 'any'; readonly of: readonly Said[] }
  | { readonly type: 'not'; readonly of: Said }
  | { readonly type: 'leaf'; readonly text: string }

const textOf = (said: Said): string => {
  switch (said.type) {
    case 'all':
    case 'any':
      return `${said.type}(${said.of.map(textOf).join(',')})`
    case 'not':
      return `not(${textOf(said.of)})`
    case 'leaf':
      return said.text
  }
}

const saidBy = (condition: Condition): Said => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return saidByGroup(condition.type, condition.of)
    case 'not': {
      const of = saidBy(condition.of)
      return of.type === 'not' ? of.of : { type: 'not', of }
    }
    case 'identified':
    case 'trait':
    case 'count':
    case 'measure':
    case 'compare':
    case 'sequence':
      return { type: 'leaf', text: leafText(condition) }
  }
}

const saidByGroup = (type: 'all' | 'any', of: readonly Condition[]): Said => {
  const members = new Map<string, Said>()
  for (const child of of) {
    const said = saidBy(child)
    for (const member of said.type === type ? said.of : [said]) members.set(textOf(member), member)
  }
  const sorted = [...members.keys()].sort().map((text) => members.get(text) as Said)
  return sorted.length === 1 ? (sorted[0] as Said) : { type, of: sorted }
}

const leafText = (
  condition: Exclude<Condition, { readonly type: 'all' | 'any' | 'not' }>,
): string => {
  switch (condition.type) {
    case 'identified':
      return 'identified'
    case 'trait':
      return `trait ${testText(condition.test)}`
    case 'count': {
      const { op, value } = condition.threshold
      return `count ${eventsText(condition.events)} ${op} ${value}`
    }
    case 'measure':
      return `${measureText(condition.measure)} ${comparisonText(condition.comparison)}`
    case 'compare':
      return compareText(condition)
    case 'sequence':
      return `sequence ${sequenceText(condition.sequence)}`
  }
}

const mirrored: Readonly<Record<OrderOperator, OrderOperator>> = {
  ...{ eq: 'eq', neq: 'neq', gt: 'lt', gte: 'lte', lt: 'gt', lte: 'gte' },
}

/** Numbers compare alike from both sides; texts that look like numbers do not. */
const compareText = ({
  left,
  op,
  right,
}: Extract<Condition, { readonly type: 'compare' }>): string => {
  const [a, b] = [measureText(left), measureText(right)]
  return b < a && isNumber(left.reduce) && isNumber(right.reduce)
    ? `compare ${b} ${mirrored[op]} ${a}`
    : `compare ${a} ${op} ${b}`
}

const isNumber = ({ type }: Reduce): boolean => !['first', 'last', 'mode', 'unique'].includes(type)

export const eventsText = ({ name, where, window }: EventSpec): string =>
  JSON.stringify([name, where === null ? '' : filterText(where), windowText(window)])

export const measureText = ({ events, reduce }: Measure): string =>
  `${reduceText(reduce)} ${eventsText(events)}`

const reduceText = (reduce: Reduce): string => {
  switch (reduce.type) {
    case 'count':
      return 'count'
    case 'distinct_days':
      return JSON.stringify([reduce.type, reduce.timezone])
    case 'mode':
      return JSON.stringify([reduce.type, reduce.path, reduce.minFrequency])
    case 'sum':
    case 'avg':
    case 'min':
    case 'max':
    case 'first':
    case 'last':
    case 'distinct':
    case 'unique':
      return JSON.stringify([reduce.type, reduce.path])
  }
}

export const sequenceText = ({ window, settle, steps }: Sequence): string =>
  JSON.stringify([windowText(window), settle, steps.map(stepText)])

const stepText = ({ name, where, then, withinMs, match }: Step): string =>
  JSON.stringify([
    ...[name, where === null ? '' : filterText(where), then, withinMs],
    [...new Set(match.map(matchText))].sort(),
  ])

const matchText = ({ path, op, step, of }: Match): string => JSON.stringify([path, op, step, of])

/** A window of the last time is written as it was before there were others, so that its leaves stay. */
const windowText = (window: Window | null): string => {
  switch (window?.type) {
    case undefined:
      return ''
    case 'last':
      return `${window.lastMs}/${window.gridMs}`
    case 'ago':
      return JSON.stringify([window.type, window.fromMs, window.untilMs, window.gridMs])
    case 'fixed':
      return JSON.stringify([window.type, window.after, window.before])
    case 'calendar':
      return JSON.stringify([window.type, window.days, window.timezone])
  }
}

/** The names of released leaves come from it: groups within groups stay as they are. */
const filterText = (filter: Filter): string => {
  switch (filter.type) {
    case 'all':
    case 'any':
      return `${filter.type}(${[...new Set(filter.of.map(filterText))].sort().join(',')})`
    case 'not':
      return `not(${filterText(filter.of)})`
    case 'prop':
      return testText(filter.test)
  }
}

const testText = ({ path, comparison }: Test): string => comparisonText(comparison, path)

/** [path, op, what it is compared with, whether case is folded]; released leaves hold this form. */
const comparisonText = (comparison: Comparison, path: Path | null = null): string => {
  const { op } = comparison
  if ('ref' in comparison)
    return JSON.stringify([path, op, { ref: refText(comparison.ref) }, comparison.foldCase])
  if ('than' in comparison) return JSON.stringify([path, op, comparison.than, comparison.timezone])
  if ('ms' in comparison) return JSON.stringify([path, op, comparison.ms, comparison.timezone])
  if (!('value' in comparison)) return JSON.stringify([path, op, null, false])
  const { value, foldCase } = comparison
  const literal = Array.isArray(value) ? value.map((each) => JSON.stringify(each)).sort() : value
  return JSON.stringify([path, op, literal, foldCase])
}

const refText = (ref: Ref): string =>
  ref.type === 'trait' ? JSON.stringify(ref.path) : measureText(ref.measure)
