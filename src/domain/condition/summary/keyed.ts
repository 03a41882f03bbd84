// Events whose filter asks for traits: they are told apart by what it must know of them, and which of them
// count is found when it is asked. Within a bucket and for one such text each reducer keeps what it keeps
// of all time.
import type { Filter } from '../condition.ts'
import { keptText, passesKept } from '../moving.ts'
import { bucketOf, type Window } from '../window.ts'
import { firstAfter, spanOf } from './buckets.ts'
import { distinctMax } from './distinct.ts'
import type { Kind, Part, Summary } from './kind.ts'
import { inside } from './series.ts'
import { emptyValues, type Values, valuesFold, valuesOf } from './values.ts'
import { readValues, textKeys, writeValues } from './values-form.ts'

export type Keyed = Values<string, Summary>

export type KeyedSpec = {
  readonly filter: Filter
  readonly window: Window | null
  /** What the reducer keeps of events of all time. */
  readonly inner: Kind<Summary>
  /** Smaller than the product's only where a test wants to reach it. */
  readonly cellsMax?: number
}

export const keyedKind = (spec: KeyedSpec): Kind<Keyed> => {
  const { filter, window, inner, cellsMax = distinctMax } = spec
  const span = spanOf(window)
  const fold = valuesFold<string, Summary>({
    ...{ span, cellsMax, isNewestEnough: false },
    merge: inner.combine,
  })
  const isTimed = span !== Number.POSITIVE_INFINITY
  const cell = { writeCell: inner.write, readCell: inner.read }
  const form = { ...textKeys, ...cell, isTimed, isListed: isTimed }
  return {
    empty: emptyValues,
    fold: (held, seen, step) => {
      const bucket = bucketOf(window, seen.te)
      if (bucket === null) return held
      const parts = inner.parts?.(seen) ?? whole(inner.fold(inner.empty, seen, step), inner)
      const text = keptText(filter, seen.properties)
      const keys = parts.map(({ name }) => `${text}${nameMark}${name}`)
      return fold.add(held, bucket, { keys, cellAt: (at) => parts[at]?.summary })
    },
    combine: fold.combine,
    write: (to, held) => writeValues(to, held, form),
    read: (from) => readValues(from, form),
    narrow: (held, traits) => narrowed(held, (text) => passesKept(filter, text, traits)),
    valueAt: ({ series }, at) => {
      const cells = series.flatMap((one) => inside(one, window, at))
      return inner.valueAt(cells.reduce(inner.combine, inner.empty), at)
    },
    nextChange: ({ series }, at) => {
      let first = Number.POSITIVE_INFINITY
      for (const { buckets } of series) first = Math.min(first, firstAfter(buckets, window, at))
      return first
    },
    capped: ({ cells }) => cells >= cellsMax,
  }
}

/** JSON writes no line break: what is before it is all that the filter must know. */
const nameMark = '\n'

/** None where the event says nothing to the reducer. */
const whole = (summary: Summary, { empty }: Kind<Summary>): readonly Part<Summary>[] =>
  summary === empty ? [] : [{ name: '', summary }]

/** Keys with the same text stand together. */
const narrowed = ({ keys, series }: Keyed, passes: (text: string) => boolean): Keyed => {
  const left: number[] = []
  let [text, passed] = ['', false]
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string
    const next = key.slice(0, key.indexOf(nameMark))
    if (next !== text) [text, passed] = [next, passes(next)]
    if (passed) left.push(at)
  }
  const of = <T>(list: readonly T[]) => left.map((at) => list[at] as T)
  return valuesOf(of(keys), of(series))
}
