// One text for conditions that say the same: it names leaves, and tells a real edit from a rewording.
import type { Condition, EventSpec, Filter, Measure, Reduce, Sequence } from './condition.ts'
import type { Comparison, Path, Test } from './value.ts'
import type { Window } from './window.ts'

/** Equal for conditions that say the same: children sorted and told apart only by what they say. */
export const canonicalText = (condition: Condition): string => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return `${condition.type}(${sorted(condition.of.map(canonicalText))})`
    case 'not':
      return `not(${canonicalText(condition.of)})`
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
      return `compare ${measureText(condition.left)} ${condition.op} ${measureText(condition.right)}`
    case 'sequence':
      return `sequence ${sequenceText(condition.sequence)}`
  }
}

export const eventsText = ({ name, where, window }: EventSpec): string =>
  JSON.stringify([name, where === null ? '' : filterText(where), windowText(window)])

export const measureText = ({ events, reduce }: Measure): string =>
  `${reduceText(reduce)} ${eventsText(events)}`

const reduceText = (reduce: Reduce): string =>
  reduce.type === 'count' ? 'count' : JSON.stringify(reduce)

export const sequenceText = ({ window, settle, steps }: Sequence): string =>
  JSON.stringify([
    windowText(window),
    settle,
    steps.map(({ where, ...step }) => [where === null ? '' : filterText(where), step]),
  ])

/** A window of the last time is written as it was before there were others, so that its leaves stay. */
const windowText = (window: Window | null): string => {
  if (window === null) return ''
  return window.type === 'last' ? `${window.lastMs}/${window.gridMs}` : JSON.stringify(window)
}

export const filterText = (filter: Filter): string => {
  switch (filter.type) {
    case 'all':
    case 'any':
      return `${filter.type}(${sorted(filter.of.map(filterText))})`
    case 'not':
      return `not(${filterText(filter.of)})`
    case 'prop':
      return testText(filter.test)
  }
}

const testText = ({ path, comparison }: Test): string => comparisonText(comparison, path)

const comparisonText = (comparison: Comparison, path: Path | null = null): string => {
  const value = 'value' in comparison ? comparison.value : null
  const literal = Array.isArray(value) ? value.map((each) => JSON.stringify(each)).sort() : value
  const foldCase = 'foldCase' in comparison && comparison.foldCase
  return JSON.stringify([path, comparison.op, literal, foldCase])
}

const sorted = (texts: readonly string[]): string => [...new Set(texts)].sort().join(',')
