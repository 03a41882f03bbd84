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
  const values = events.map(({ properties }) => valueAt(properties, prop) ?? null)
  const scalars = values.filter(isScalar)
  const numbers = values.filter((it) => numberOf(it) !== null)
  const texts = values
    .flat()
    .filter(isScalar)
    .map((it) => String(it).normalize('NFC'))
  const different = [...new Set(texts)].sort(byCodePoint)
  const times = (text: string) => texts.filter((it) => it === text).length
  const total = () => numbers.reduce<bigint>((sum, it) => sum + millionths(it), 0n)
  switch (reducer) {
    case 'count':
      return events.length
    case 'sum':
      return nearest(total(), 1)
    case 'avg':
      return numbers.length === 0 ? undefined : nearest(total(), numbers.length)
    case 'min':
      return numbers.length === 0 ? undefined : Math.min(...numbers.map(Number)) + 0
    case 'max':
      return numbers.length === 0 ? undefined : Math.max(...numbers.map(Number)) + 0
    case 'first':
      return scalars[0]
    case 'last':
      return scalars.at(-1)
    case 'distinct':
      return different.length || undefined
    case 'unique':
      return different.length === 0 ? undefined : different
    case 'mode':
      return different
        .filter((text) => times(text) >= min_frequency)
        .sort((a, b) => times(b) - times(a) || byCodePoint(a, b))[0]
    case 'distinct_days':
      return new Set(events.map(({ te }) => localDay(timezone, te))).size || undefined
  }
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
