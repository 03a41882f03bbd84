// Which kind of summary each reducer keeps.
import type { Measure } from '../condition.ts'
import { splitFilter } from '../moving.ts'
import { countKind } from './count.ts'
import { distinctDaysKind, distinctKind, modeKind, uniqueKind } from './distinct.ts'
import { firstKind, lastKind } from './edge.ts'
import { maxKind, minKind } from './extreme.ts'
import { keyedKind } from './keyed.ts'
import type { Kind, Summary } from './kind.ts'
import { avgKind, sumKind } from './total.ts'

export const measureKind = (measure: Measure, keep: number): Kind<Summary> => {
  const { events, reduce } = measure
  const { moving: filter } = splitFilter(events.where)
  if (filter === null) return kindOf(measure, keep) as Kind<Summary>
  const ofAllTime = { events: { ...events, window: null }, reduce }
  const inner = kindOf(ofAllTime, keep) as Kind<Summary>
  return keyedKind({ filter, window: events.window, inner }) as Kind<Summary>
}

const kindOf = ({ events: { window }, reduce }: Measure, keep: number) => {
  switch (reduce.type) {
    case 'count':
      return countKind(window, keep)
    case 'sum':
      return sumKind(window, reduce.path)
    case 'avg':
      return avgKind(window, reduce.path)
    case 'min':
      return minKind(window, reduce.path)
    case 'max':
      return maxKind(window, reduce.path)
    case 'first':
      return firstKind(window, reduce.path)
    case 'last':
      return lastKind(window, reduce.path)
    case 'distinct':
      return distinctKind({ window, path: reduce.path })
    case 'unique':
      return uniqueKind({ window, path: reduce.path })
    case 'mode':
      return modeKind({ window, path: reduce.path }, reduce.minFrequency)
    case 'distinct_days':
      return distinctDaysKind(window, reduce.timezone)
  }
}
