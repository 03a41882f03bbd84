// Distinct values: how many, which, which most often, and on how many days there was an event.
import { localDay } from '../../zone.ts'
import type { Path } from '../path.ts'
import { compareCodePoints } from '../value.ts'
import type { Window } from '../window.ts'
import type { Kind } from './kind.ts'
import { shortText, textsAt } from './scalar.ts'
import type { Values } from './values.ts'
import { numberKeys, textKeys } from './values-form.ts'
import { valuesKind } from './values-kind.ts'

/** More of one user are not told apart: the number stops there, and the oldest are left out of a list. */
export const distinctMax = 10_000
/** Of values and buckets: there are as many values in them as of the others, and usually more room. */
export const modeMax = 4 * distinctMax

export type ValueMeasure = {
  readonly window: Window | null
  readonly path: Path
  /** Smaller than the product's only where a test wants to reach it. */
  readonly cellsMax?: number
}

export const distinctKind = ({ window, path, cellsMax }: ValueMeasure): Kind<Values<string>> =>
  valuesKind({
    ...textKeys,
    window,
    isCounted: false,
    cellsMax: cellsMax ?? distinctMax,
    keysOf: ({ properties }) => textsAt(properties, path).map(shortText),
    answer: (texts) => (texts.length === 0 ? undefined : texts.length),
  })

export const uniqueKind = ({ window, path, cellsMax }: ValueMeasure): Kind<Values<string>> =>
  valuesKind({
    ...textKeys,
    window,
    isCounted: false,
    cellsMax: cellsMax ?? distinctMax,
    keysOf: ({ properties }) => textsAt(properties, path),
    answer: (texts) => (texts.length === 0 ? undefined : texts.toSorted(compareCodePoints)),
  })

export const modeKind = (
  { window, path, cellsMax }: ValueMeasure,
  minFrequency: number,
): Kind<Values<string>> =>
  valuesKind({
    ...textKeys,
    window,
    isCounted: true,
    cellsMax: cellsMax ?? modeMax,
    keysOf: ({ properties }) => textsAt(properties, path),
    answer: (texts, counts) => mostFrequent(texts, counts, minFrequency),
  })

const mostFrequent = (
  texts: readonly string[],
  counts: readonly number[],
  minFrequency: number,
): string | undefined => {
  let best: string | undefined
  let most = minFrequency
  for (let at = 0; at < texts.length; at++) {
    const [text, count] = [texts[at] as string, counts[at] as number]
    if (count < most) continue
    if (best === undefined || count > most || compareCodePoints(text, best) < 0) best = text
    most = count
  }
  return best
}

/** Local calendar days with at least one event in the window. */
export const distinctDaysKind = (window: Window | null, timezone: string): Kind<Values<number>> =>
  valuesKind({
    ...numberKeys,
    window,
    isCounted: false,
    cellsMax: distinctMax,
    keysOf: ({ te }) => [localDay(timezone, te)],
    answer: (days) => (days.length === 0 ? undefined : days.length),
  })
