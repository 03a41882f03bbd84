// The smallest or the largest number. Beside a newer one at least as good, an older one never matters.
import type { Json } from '../../message.ts'
import { type Path, valuesAt } from '../path.ts'
import { numberOf } from '../value.ts'
import { bucketOf, type Window } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import { readNumber, writeNumber } from './exact.ts'
import type { Kind } from './kind.ts'
import {
  emptySeries,
  inside,
  never,
  readSeries,
  type Series,
  seriesFold,
  writeSeries,
} from './series.ts'

type Better = (left: number, right: number) => number

const extremeKind = (window: Window | null, path: Path, better: Better): Kind<Series<number>> => {
  const fold = seriesFold<number>({
    span: spanOf(window),
    merge: better,
    // In a window of ages the newer may not be in yet.
    dominates: window?.type === 'ago' ? never : (newer, older) => better(newer, older) === newer,
  })
  return {
    empty: emptySeries,
    fold: (series, { te, properties }) => {
      const bucket = bucketOf(window, te)
      const number = bucket === null ? null : extremeAt(properties, path, better)
      return number === null ? series : fold.add(series, bucket as number, number)
    },
    combine: fold.combine,
    write: (to, series) => writeSeries(to, series, writeNumber),
    read: (from) => readSeries(from, readNumber),
    valueAt: (series, at) => {
      const numbers = inside(series, window, at)
      return numbers.length === 0
        ? undefined
        : numbers.reduce((best, number) => better(best, number))
    },
    nextChange: ({ buckets }, at) => firstAfter(buckets, window, at),
  }
}

const extremeAt = (properties: Json | undefined, path: Path, better: Better): number | null => {
  let best: number | null = null
  for (const value of valuesAt(properties, path)) {
    const number = numberOf(value)
    // There is one zero.
    if (number !== null) best = best === null ? number + 0 : better(best, number + 0)
  }
  return best
}

export const minKind = (window: Window | null, path: Path): Kind<Series<number>> =>
  extremeKind(window, path, Math.min)

export const maxKind = (window: Window | null, path: Path): Kind<Series<number>> =>
  extremeKind(window, path, Math.max)
