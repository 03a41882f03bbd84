// A leaf is what audiences share: events, filter and window, but not the N they are compared with.
import { createHash } from 'node:crypto'
import type { Condition, EventSpec, Filter } from './condition.ts'
import type { Test } from './value.ts'

/** One leaf as the conditions ask for it; `keep` is the number of newest events that must be known. */
export type LeafNeed = {
  readonly hash: string
  readonly events: EventSpec
  readonly keep: number
}

export const leavesOf = (condition: Condition): readonly LeafNeed[] => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return condition.of.flatMap(leavesOf)
    case 'not':
      return leavesOf(condition.of)
    case 'trait':
      return []
    case 'count':
      return [
        {
          hash: leafHash(condition.events),
          events: condition.events,
          keep: condition.threshold.value + 1,
        },
      ]
  }
}

export const leafHash = (events: EventSpec): string =>
  createHash('sha256')
    .update(`count ${eventsText(events)}`)
    .digest('hex')

/** Equal for conditions that say the same: children sorted and told apart only by what they say. */
export const canonicalText = (condition: Condition): string => {
  switch (condition.type) {
    case 'all':
    case 'any':
      return `${condition.type}(${sorted(condition.of.map(canonicalText))})`
    case 'not':
      return `not(${canonicalText(condition.of)})`
    case 'trait':
      return `trait ${testText(condition.test)}`
    case 'count': {
      const { op, value } = condition.threshold
      return `count ${eventsText(condition.events)} ${op} ${value}`
    }
  }
}

const eventsText = ({ name, where, window }: EventSpec): string => {
  const filter = where === null ? '' : filterText(where)
  const last = window === null ? '' : `${window.lastMs}/${window.gridMs}`
  return JSON.stringify([name, filter, last])
}

const filterText = (filter: Filter): string => {
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

const testText = ({ path, comparison }: Test): string => {
  const value = 'value' in comparison ? comparison.value : null
  const literal = Array.isArray(value) ? value.map((each) => JSON.stringify(each)).sort() : value
  const foldCase = 'foldCase' in comparison && comparison.foldCase
  return JSON.stringify([path, comparison.op, literal, foldCase])
}

const sorted = (texts: readonly string[]): string => [...new Set(texts)].sort().join(',')
