// Sums and averages: exact, so that the order events come in cannot matter.
import type { Json } from '../../message.ts'
import { type Path, valuesAt } from '../path.ts'
import type { Window } from '../window.ts'
import { bucketOf } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import {
  addExact,
  type Millionths,
  millionthsOf,
  quotient,
  readExact,
  writeExact,
} from './exact.ts'
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

export const sumKind = (window: Window | null, path: Path): Kind<Series<Millionths>> => {
  const merge = (held: Millionths, added: Millionths) =>
    added === 0 ? held : addExact(held, added)
  const fold = seriesFold<Millionths>({ span: spanOf(window), merge, dominates: never })
  return {
    empty: emptySeries,
    fold: (series, { te, properties }) => {
      const bucket = bucketOf(window, te)
      if (bucket === null) return series
      const found = totalAt(properties, path)
      return found === null ? series : fold.add(series, bucket, found.sum)
    },
    combine: fold.combine,
    write: (to, series) => writeSeries(to, series, writeExact),
    read: (from) => readSeries(from, readExact),
    valueAt: (series, at) => quotient(inside(series, window, at).reduce<Millionths>(addExact, 0)),
    nextChange: ({ buckets }, at) => firstAfter(buckets, window, at),
  }
}

type Total = { readonly sum: Millionths; readonly count: number }

export const avgKind = (window: Window | null, path: Path): Kind<Series<Total>> => {
  const fold = seriesFold<Total>({ span: spanOf(window), merge: addTotals, dominates: never })
  return {
    empty: emptySeries,
    fold: (series, { te, properties }) => {
      const bucket = bucketOf(window, te)
      const found = bucket === null ? null : totalAt(properties, path)
      return found === null ? series : fold.add(series, bucket as number, found)
    },
    combine: fold.combine,
    write: (to, series) =>
      writeSeries(to, series, (_, { sum, count }) => {
        writeExact(to, sum)
        to.varint(count)
      }),
    read: (from) => readSeries(from, () => ({ sum: readExact(from), count: from.varint() })),
    valueAt: (series, at) => {
      const { sum, count } = inside(series, window, at).reduce(addTotals, { sum: 0, count: 0 })
      return count === 0 ? undefined : quotient(sum, count)
    },
    nextChange: ({ buckets }, at) => firstAfter(buckets, window, at),
  }
}

const addTotals = (left: Total, right: Total): Total => ({
  sum: addExact(left.sum, right.sum),
  count: left.count + right.count,
})

/** Of one event, whose path may lead to several numbers; `null` where it leads to none. */
const totalAt = (properties: Json | undefined, path: Path): Total | null => {
  let total: Total | null = null
  for (const value of valuesAt(properties, path)) {
    const sum = millionthsOf(value)
    if (sum === null) continue
    total = total === null ? { sum, count: 1 } : addTotals(total, { sum, count: 1 })
  }
  return total
}
