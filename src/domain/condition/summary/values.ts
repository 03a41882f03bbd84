// Which values there were, and for each of them in which buckets of the window.
import { alive, emptySeries, never, type Rule, type Series, seriesFold } from './series.ts'

export type Key = string | number

export type Values<K extends Key, C = number> = {
  /** Ascending. */
  readonly keys: readonly K[]
  /** What is kept of each: how often it was there, or just that it was. */
  readonly series: readonly Series<C>[]
  /** The newest bucket of all, -1 before there is one. */
  readonly newest: number
  /** Of all series together. */
  readonly cells: number
}

export type ValuesRule<C> = {
  readonly span: number
  /** Of one value in one bucket; `held` itself where `added` changes nothing. */
  readonly merge: (held: C, added: C) => C
  /** Whether only the newest bucket of a value can matter. */
  readonly isNewestEnough: boolean
  readonly cellsMax: number
}

export const emptyValues: Values<never, never> = { keys: [], series: [], newest: -1, cells: 0 }

/** What one event adds: to each of these values, by its place, a cell. */
export type Added<K extends Key, C> = {
  readonly keys: readonly K[]
  readonly cellAt: (place: number) => C
}

export type ValuesFold<K extends Key, C> = {
  /** The same object when it changes nothing. */
  add(values: Values<K, C>, bucket: number, added: Added<K, C>): Values<K, C>
  combine(left: Values<K, C>, right: Values<K, C>): Values<K, C>
}

export const valuesFold = <K extends Key, C>(rule: ValuesRule<C>): ValuesFold<K, C> => {
  const cells: Rule<C> = {
    span: rule.span,
    merge: rule.merge,
    dominates: rule.isNewestEnough ? () => true : never,
  }
  const fold = seriesFold(cells)
  type One = { readonly bucket: number; readonly key: K; readonly cell: C }
  const addOne = (values: Values<K, C>, { bucket, key, cell }: One): Values<K, C> => {
    const at = placeOf(values.keys, key)
    const held = values.keys[at] === key ? values.series[at] : undefined
    const added = fold.add(held ?? emptySeries, bucket, cell)
    if (added === held) return values
    return {
      keys: held === undefined ? values.keys.toSpliced(at, 0, key) : values.keys,
      series:
        held === undefined ? values.series.toSpliced(at, 0, added) : values.series.with(at, added),
      newest: Math.max(values.newest, bucket),
      cells: values.cells + added.buckets.length - (held?.buckets.length ?? 0),
    }
  }
  return {
    add: (values, bucket, { keys, cellAt }) => {
      if (bucket <= values.newest - rule.span) return values
      let added = values
      for (let at = 0; at < keys.length; at++)
        added = addOne(added, { bucket, key: keys[at] as K, cell: cellAt(at) })
      return added === values ? values : bounded(added, rule)
    },
    combine: (left, right) => {
      if (left.keys.length === 0) return right
      if (right.keys.length === 0) return left
      return bounded(union(left, right, fold.combine), rule)
    },
  }
}

/** Where the key is, or would be. */
const placeOf = <K extends Key>(keys: readonly K[], key: K): number => {
  let [from, until] = [0, keys.length]
  while (from < until) {
    const middle = (from + until) >> 1
    if ((keys[middle] as K) < key) from = middle + 1
    else until = middle
  }
  return from
}

const union = <K extends Key, C>(
  left: Values<K, C>,
  right: Values<K, C>,
  combine: (left: Series<C>, right: Series<C>) => Series<C>,
): Values<K, C> => {
  const keys: K[] = []
  const series: Series<C>[] = []
  let [l, r] = [0, 0]
  while (l < left.keys.length || r < right.keys.length) {
    const [a, b] = [left.keys[l], right.keys[r]]
    const isLeft = b === undefined || (a !== undefined && a <= b)
    const isRight = a === undefined || (b !== undefined && b <= a)
    keys.push((isLeft ? a : b) as K)
    series.push(
      combine(
        isLeft ? (left.series[l++] as Series<C>) : emptySeries,
        isRight ? (right.series[r++] as Series<C>) : emptySeries,
      ),
    )
  }
  return valuesOf(keys, series)
}

/** Of keys, ascending, and what each of them has. */
export const valuesOf = <K extends Key, C>(
  keys: readonly K[],
  series: readonly Series<C>[],
): Values<K, C> => {
  let [newest, cells] = [-1, 0]
  for (const { buckets } of series) {
    newest = Math.max(newest, buckets[0] as number)
    cells += buckets.length
  }
  return { keys, series, newest, cells }
}

const bounded = <K extends Key, C>(
  values: Values<K, C>,
  { span, cellsMax }: ValuesRule<C>,
): Values<K, C> => {
  const tail = values.newest - span
  const lives = values.series.every(({ buckets }) => (buckets[buckets.length - 1] as number) > tail)
  const living = lives ? values : mapped(values, (series) => alive(series, tail))
  return living.cells > cellsMax ? cut(living, living.cells - cellsMax) : living
}

/** Without the keys of which nothing is left. */
const mapped = <K extends Key, C>(
  { keys, series }: Values<K, C>,
  change: (series: Series<C>) => Series<C>,
): Values<K, C> => {
  const kept: K[] = []
  const changed: Series<C>[] = []
  // From the largest, as `cut` takes them.
  for (let at = keys.length - 1; at >= 0; at--) {
    const left = change(series[at] as Series<C>)
    if (left.buckets.length === 0) continue
    kept.push(keys[at] as K)
    changed.push(left)
  }
  return valuesOf(kept.reverse(), changed.reverse())
}

/**
 * Without `count` cells: the oldest, and of one bucket those of the largest keys. What goes ranks below
 * all that stays, and always will: it does not matter in which order they came.
 */
const cut = <K extends Key, C>(values: Values<K, C>, count: number): Values<K, C> => {
  const buckets = new Float64Array(values.cells)
  let filled = 0
  for (const series of values.series)
    for (const bucket of series.buckets) buckets[filled++] = bucket
  buckets.sort()
  const edge = buckets[count] as number
  let left = count - buckets.indexOf(edge)
  return mapped(values, (series) => {
    const within = alive(series, edge - 1)
    if (left === 0 || within.buckets.at(-1) !== edge) return within
    left--
    return alive(within, edge)
  })
}
