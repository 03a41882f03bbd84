// What all reducers have in common that tell values apart.
import type { Json } from '../../message.ts'
import { bucketOf, type Window } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import type { Kind, Observation } from './kind.ts'
import { inside, type Series } from './series.ts'
import { emptyValues, type Key, type Values, valuesFold } from './values.ts'
import { counted, readValues, uncounted, type ValuesForm, writeValues } from './values-form.ts'

export type ValuesSpec<K extends Key> = Pick<ValuesForm<K, number>, 'writeKey' | 'readKey'> & {
  readonly window: Window | null
  /** Whether it matters how often a value was there. */
  readonly isCounted: boolean
  /** So many values and their buckets are kept of one user. */
  readonly cellsMax: number
  readonly keysOf: (seen: Observation) => readonly K[]
  /** Of the values in the window, ascending, and how often each is. */
  readonly answer: (keys: readonly K[], counts: readonly number[]) => Json | undefined
}

const once = () => 1

export const valuesKind = <K extends Key>(spec: ValuesSpec<K>): Kind<Values<K>> => {
  const { window, isCounted, cellsMax } = spec
  const span = spanOf(window)
  // In a window of ages the newest may not be in yet.
  const isNewestEnough = !isCounted && window?.type !== 'ago'
  const merge = isCounted ? (held: number, added: number) => held + added : (held: number) => held
  const fold = valuesFold<K, number>({ span, merge, isNewestEnough, cellsMax })
  const isTimed = span !== Number.POSITIVE_INFINITY
  const cells = isCounted ? counted : uncounted
  const form = { ...spec, ...cells, isTimed, isListed: isTimed && !isNewestEnough }
  return {
    empty: emptyValues,
    fold: (values, seen) => {
      const bucket = bucketOf(window, seen.te)
      if (bucket === null) return values
      return fold.add(values, bucket, { keys: spec.keysOf(seen), cellAt: once })
    },
    parts: (seen) => {
      const bucket = bucketOf(window, seen.te)
      if (bucket === null) return []
      return spec.keysOf(seen).map((key) => ({
        name: String(key),
        summary: fold.add(emptyValues, bucket, { keys: [key], cellAt: once }),
      }))
    },
    combine: fold.combine,
    write: (to, values) => writeValues(to, values, form),
    read: (from) => readValues(from, form),
    valueAt: (values, at) => {
      const keys: K[] = []
      const counts: number[] = []
      for (let place = 0; place < values.keys.length; place++) {
        const cells = inside(values.series[place] as Series<number>, window, at)
        if (cells.length === 0) continue
        keys.push(values.keys[place] as K)
        counts.push(cells.reduce((sum, count) => sum + count, 0))
      }
      return spec.answer(keys, counts)
    },
    nextChange: ({ series }, at) => {
      let first = Number.POSITIVE_INFINITY
      for (const { buckets } of series) first = Math.min(first, firstAfter(buckets, window, at))
      return first
    },
    capped: ({ cells }) => cells >= cellsMax,
  }
}
