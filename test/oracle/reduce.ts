// The naive evaluator's reducers: what is made of the properties of a list of events.
import { localDay } from './time.ts'
import { byCodePoint, isScalar, type Json, numberOf, type Path, valueAt } from './values.ts'

export type Happened = { readonly te: number; readonly properties: Json }

export type Reducing = {
  readonly prop?: Path
  readonly min_frequency?: number
  readonly timezone?: string
}

export const reducers = [
  ...(['count', 'sum', 'avg', 'min', 'max', 'first', 'last'] as const),
  ...(['distinct', 'unique', 'mode', 'distinct_days'] as const),
]
export type Reducer = (typeof reducers)[number]

/** Of events in order; `undefined` is a missing value. */
export const reduce = (
  reducer: Reducer,
  { prop = [], min_frequency = 2, timezone = 'UTC' }: Reducing,
  events: readonly Happened[],
): Json | undefined => {
  if (reducer === 'count') return events.length
  if (reducer === 'distinct_days')
    return new Set(events.map(({ te }) => localDay(timezone, te))).size || undefined
  const values = events.map(({ properties }) => valueAt(properties, prop) ?? null)
  if (reducer === 'first') return values.find(isScalar)
  if (reducer === 'last') return values.findLast(isScalar)
  return ofNumbers(reducer, values) ?? ofTexts(reducer, values, min_frequency)
}

const ofNumbers = (reducer: Reducer, values: readonly Json[]): Json | undefined => {
  const numbers = values.filter((it) => numberOf(it) !== null)
  const total = () => numbers.reduce<bigint>((sum, it) => sum + millionths(it), 0n)
  if (reducer === 'sum') return nearest(total(), 1)
  if (numbers.length === 0) return undefined
  if (reducer === 'avg') return nearest(total(), numbers.length)
  if (reducer === 'min') return Math.min(...numbers.map(Number)) + 0
  return reducer === 'max' ? Math.max(...numbers.map(Number)) + 0 : undefined
}

const ofTexts = (
  reducer: Reducer,
  values: readonly Json[],
  frequency: number,
): Json | undefined => {
  const scalars = values.flat().filter(isScalar)
  const texts = scalars.map((it) => String(it).normalize('NFC'))
  const times = (text: string) => texts.filter((it) => it === text).length
  const different = [...new Set(texts)].sort(byCodePoint)
  if (reducer === 'distinct') return different.length || undefined
  if (reducer === 'unique') return different.length === 0 ? undefined : different
  if (reducer !== 'mode') return undefined
  return different
    .filter((text) => times(text) >= frequency)
    .sort((a, b) => times(b) - times(a) || byCodePoint(a, b))[0]
}

/** Rounded at the sixth decimal of how the number is written. */
const millionths = (value: Json): bigint => {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)\.?(\d*)$/.exec(mantissa) ?? []
  const shift = Number(exponent) + 7 - fraction.length
  const digits = BigInt(whole + fraction + '0'.repeat(Math.max(0, shift)))
  const tenths = digits / 10n ** BigInt(Math.max(0, -shift))
  const rounded = (tenths + 5n) / 10n
  return sign === '-' ? -rounded : rounded
}

/** The number nearest to an exact fraction, by way of more digits than any number has. */
const nearest = (sum: bigint, count: number): number =>
  Number(`${(sum * 10n ** 60n) / BigInt(count)}e-66`) + 0
