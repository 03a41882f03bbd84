// The first and the last value, in the order of effective time, receipt and message id.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import { isNewer, type Stamp } from '../../traits.ts'
import type { Path } from '../path.ts'
import { bucketOf, type Window } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import type { Kind } from './kind.ts'
import { readScalar, type Scalar, scalarsAt, writeScalar } from './scalar.ts'
import {
  emptySeries,
  inside,
  never,
  readSeries,
  type Series,
  seriesFold,
  writeSeries,
} from './series.ts'
import { readStamp, writeStamp } from './stamp.ts'

type Said = { readonly value: Scalar; readonly stamp: Stamp }

type Edge = {
  readonly better: (held: Said, added: Said) => Said
  /** Which cell of the window, newest first, and which value of one event. */
  readonly cell: 0 | -1
  readonly value: 0 | -1
}

const edgeKind = (window: Window | null, path: Path, edge: Edge): Kind<Series<Said>> => {
  const isLast = edge.cell === 0
  const fold = seriesFold<Said>({
    span: spanOf(window),
    merge: edge.better,
    // The last leaves the window last; in a window of ages it may not be in yet.
    dominates: isLast && window?.type !== 'ago' ? () => true : never,
  })
  return {
    empty: emptySeries,
    fold: (series, { te, r, id, properties }) => {
      const bucket = bucketOf(window, te)
      const value = bucket === null ? undefined : scalarsAt(properties, path).at(edge.value)
      if (value === undefined) return series
      return fold.add(series, bucket as number, { value, stamp: { te, r, id } })
    },
    combine: fold.combine,
    write: (to, series) => writeSeries(to, series, writeSaid),
    read: (from) => readSeries(from, readSaid),
    valueAt: (series, at) => inside(series, window, at).at(edge.cell)?.value,
    nextChange: ({ buckets }, at) => firstAfter(buckets, window, at),
  }
}

export const firstKind = (window: Window | null, path: Path): Kind<Series<Said>> =>
  edgeKind(window, path, {
    better: (held, added) => (isNewer(held.stamp, added.stamp) ? added : held),
    cell: -1,
    value: 0,
  })

export const lastKind = (window: Window | null, path: Path): Kind<Series<Said>> =>
  edgeKind(window, path, {
    better: (held, added) => (isNewer(added.stamp, held.stamp) ? added : held),
    cell: 0,
    value: -1,
  })

const writeSaid = (to: ByteWriter, { value, stamp }: Said): void => {
  writeStamp(to, stamp)
  writeScalar(to, value)
}

const readSaid = (from: ByteReader): Said => {
  const stamp = readStamp(from)
  return { value: readScalar(from), stamp }
}
