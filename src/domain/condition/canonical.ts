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
export const canonicalText = (condition: Condition): string => {
  switch (condition.type) {
    case 'all':
    case 'any': {
      const texts = [...new Set(membersOf(condition.type, condition.of))].sort()
      return texts.length === 1 ? (texts[0] as string) : `${condition.type}(${texts.join(',')})`
    }
    case 'not':
      return condition.of.type === 'not'
        ? canonicalText(condition.of.of)
        : `not(${canonicalText(condition.of)})`
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

/** Whatever brings a group into a group, brackets of one or two negations, the outer takes it in. */
const membersOf = (type: 'all' | 'any', of: readonly Condition[]): readonly string[] =>
  of.flatMap((child) => {
    const bare = unwrapped(child)
    return bare.type === type ? membersOf(type, bare.of) : [canonicalText(bare)]
  })

const unwrapped = (condition: Condition): Condition => {
  if (condition.type === 'not' && condition.of.type === 'not') return unwrapped(condition.of.of)
  if ((condition.type === 'all' || condition.type === 'any') && condition.of.length === 1)
    return unwrapped(condition.of[0] as Condition)
  return condition
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
