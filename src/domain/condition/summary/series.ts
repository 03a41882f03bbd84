// One cell for each bucket of a window, newest first: what most reducers keep.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import { headOf, tailOf, type Window } from '../window.ts'

export type Series<C> = {
  readonly buckets: readonly number[]
  readonly cells: readonly C[]
}

export type Rule<C> = {
  /** How far below the newest bucket one is still kept. */
  readonly span: number
  /** Of one bucket; `held` itself where `added` changes nothing. */
  readonly merge: (held: C, added: C) => C
  /** Whether an older cell can never matter beside a newer one: the newer stays longer. */
  readonly dominates: (newer: C, older: C) => boolean
}

export const never = (): boolean => false

export const emptySeries: Series<never> = { buckets: [], cells: [] }

export type SeriesFold<C> = {
  /** The same object when it changes nothing. */
  add(series: Series<C>, bucket: number, cell: C): Series<C>
  combine(left: Series<C>, right: Series<C>): Series<C>
}

export const seriesFold = <C>(rule: Rule<C>): SeriesFold<C> => ({
  add: (series, bucket, cell) => {
    const { buckets, cells } = series
    const newest = Math.max(buckets[0] ?? bucket, bucket)
    if (bucket <= newest - rule.span) return series
    let at = 0
    while (at < buckets.length && (buckets[at] as number) > bucket) at++
    if (at > 0 && rule.dominates(cells[at - 1] as C, cell)) return series
    const isHeld = buckets[at] === bucket
    const merged = isHeld ? rule.merge(cells[at] as C, cell) : cell
    if (isHeld && merged === cells[at]) return series
    const until = firstFree(cells, isHeld ? at + 1 : at, (older) => rule.dominates(merged, older))
    if (isHeld && until === at + 1) return { buckets, cells: cells.with(at, merged) }
    return alive(
      {
        buckets: buckets.toSpliced(at, until - at, bucket),
        cells: cells.toSpliced(at, until - at, merged),
      },
      newest - rule.span,
    )
  },
  combine: (left, right) => {
    if (left.buckets.length === 0) return right
    if (right.buckets.length === 0) return left
    return merged(left, right, rule)
  },
})

/** The first cell from `at` on that is not dominated. */
const firstFree = <C>(
  cells: readonly C[],
  at: number,
  isDominated: (cell: C) => boolean,
): number => {
  let free = at
  while (free < cells.length && isDominated(cells[free] as C)) free++
  return free
}

/** Without the buckets up to `tail`. */
export const alive = <C>(series: Series<C>, tail: number): Series<C> => {
  let until = series.buckets.length
  while (until > 0 && (series.buckets[until - 1] as number) <= tail) until--
  if (until === series.buckets.length) return series
  return { buckets: series.buckets.slice(0, until), cells: series.cells.slice(0, until) }
}

const merged = <C>(left: Series<C>, right: Series<C>, rule: Rule<C>): Series<C> => {
  const buckets: number[] = []
  const cells: C[] = []
  const tail = Math.max(left.buckets[0] as number, right.buckets[0] as number) - rule.span
  let [l, r] = [0, 0]
  while (l < left.buckets.length || r < right.buckets.length) {
    const a = left.buckets[l] ?? Number.NEGATIVE_INFINITY
    const b = right.buckets[r] ?? Number.NEGATIVE_INFINITY
    const bucket = Math.max(a, b)
    if (bucket <= tail) break
    let cell = (a === bucket ? left.cells[l++] : right.cells[r++]) as C
    if (a === b) cell = rule.merge(cell, right.cells[r++] as C)
    // The one before it is the best of all that are newer.
    if (cells.length > 0 && rule.dominates(cells[cells.length - 1] as C, cell)) continue
    buckets.push(bucket)
    cells.push(cell)
  }
  return { buckets, cells }
}

/** The cells of the window at an instant, newest first. */
export const inside = <C>(
  { buckets, cells }: Series<C>,
  window: Window | null,
  at: number,
): readonly C[] => {
  const [tail, head] = [tailOf(window, at), headOf(window, at)]
  let [from, until] = [0, cells.length]
  while (from < until && (buckets[from] as number) > head) from++
  while (until > from && (buckets[until - 1] as number) <= tail) until--
  return from === 0 && until === cells.length ? cells : cells.slice(from, until)
}

/** How many buckets, then the newest, then for each older one how much older; each with its cell. */
export const writeSeries = <C>(
  to: ByteWriter,
  { buckets, cells }: Series<C>,
  write: (to: ByteWriter, cell: C) => void,
): void => {
  to.varint(buckets.length)
  let newer = 0
  for (let at = 0; at < buckets.length; at++) {
    const bucket = buckets[at] as number
    to.varint(at === 0 ? bucket : newer - bucket)
    write(to, cells[at] as C)
    newer = bucket
  }
}

export const readSeries = <C>(from: ByteReader, read: (from: ByteReader) => C): Series<C> => {
  const length = from.varint()
  const buckets: number[] = []
  const cells: C[] = []
  for (let at = 0; at < length; at++) {
    const number = from.varint()
    buckets.push(at === 0 ? number : (buckets[at - 1] as number) - number)
    cells.push(read(from))
  }
  return { buckets, cells }
}
