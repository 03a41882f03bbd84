// The naive evaluator's values: how they are compared, and what is made of those of a list of events.

import { dateOf, durationOf, localDay } from '../support/calendar.ts'
import type { Comparison, Json, Path, Reducer, Reducing } from '../support/language.ts'

/** "[*]" stands for each element of a list. */
const valuesAt = (root: Json, path: Path): readonly Json[] => {
  const keys = typeof path === 'string' ? path.replaceAll('[*]', '.[*]').split('.') : path
  const below = (here: Json, key: string): readonly Json[] => {
    if (here === null || typeof here !== 'object') return []
    if (Array.isArray(here)) return key === '[*]' ? here : []
    return Object.entries(here).flatMap(([name, value]) => (name === key ? [value] : []))
  }
  return keys.reduce<readonly Json[]>((found, key) => found.flatMap((it) => below(it, key)), [root])
}

export const valueAt = (root: Json, path: Path): Json | undefined => valuesAt(root, path)[0]

type When = { readonly at: number; readonly zone: string }

/** Through a list: whether it holds for any element; `absent` where nothing is found at all. */
export const passes = (test: Comparison, [root, path]: readonly [Json, Path], when: When) => {
  const found = valuesAt(root, path).filter((it) => it !== null)
  return found.length === 0 ? test.op === 'absent' : found.some((it) => compares(test, it, when))
}

/** On a missing or null value every comparator is false, except `absent`. */
export const compares = (
  { op, value = null, ci = false, timezone }: Comparison,
  found: Json | undefined,
  { at, zone }: When = { at: 0, zone: 'UTC' },
): boolean => {
  if (found === undefined || found === null) return op === 'absent'
  const [elements, wanted] = [listOf(found), listOf(value)]
  const same = (left: Json, right: Json) => equals(left, right, ci)
  const has = (it: Json) => elements.some((element) => same(element, it))
  const sign = () => order(found, value, ci)
  const says = (test: (whole: string, part: string) => boolean) =>
    elements.some((it) => typeof it === 'string' && test(plain(it, ci), plain(String(value), ci)))
  const date = () => dateOf(found, timezone ?? zone) ?? NaN
  const limit = () => dateOf(value, timezone ?? zone) as number
  const age = () => at - date()
  const span = () => durationOf(String(value))
  const operators: { readonly [op: string]: () => boolean } = {
    exists: () => true,
    absent: () => false,
    eq: () => same(found, value),
    neq: () => !same(found, value),
    one_of: () => wanted.some((it) => same(found, it)),
    none_of: () => !wanted.some((it) => same(found, it)),
    gt: () => sign() > 0,
    gte: () => sign() >= 0,
    lt: () => sign() < 0,
    lte: () => sign() <= 0,
    contains: () => says((whole, part) => whole.includes(part)),
    omits: () => !says((whole, part) => whole.includes(part)),
    starts_with: () => says((whole, part) => whole.startsWith(part)),
    ends_with: () => says((whole, part) => whole.endsWith(part)),
    matches: () => says((whole) => new RegExp(String(value), ci ? 'iu' : 'u').test(whole)),
    contains_any: () => Array.isArray(found) && wanted.some(has),
    contains_all: () => Array.isArray(found) && wanted.every(has),
    contains_none: () => Array.isArray(found) && !wanted.some(has),
    before_date: () => date() < limit(),
    after_date: () => date() >= limit(),
    within_last: () => age() >= 0 && age() < span(),
    before_last: () => age() >= span(),
    within_next: () => age() < 0 && age() >= -span(),
    after_next: () => age() < -span(),
  }
  if (!(op in operators)) throw new Error(`the oracle does not know the comparator ${op}`)
  return operators[op]?.() === true
}

const listOf = (it: Json): readonly Json[] => (Array.isArray(it) ? it : [it])
const plain = (text: string, ci: boolean) =>
  ci ? text.normalize('NFC').toLowerCase() : text.normalize('NFC')

export const isScalar = (value: Json | undefined): value is string | number | boolean =>
  value !== undefined && value !== null && typeof value !== 'object'

/** What is no number is NaN, which equals nothing and has no order. */
const numberOf = (value: Json): number => {
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : NaN
  const isDecimal = typeof value === 'string' && /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(value)
  return isDecimal ? Number(value) + 0 : NaN
}

/** A string equals a number only where the literal is the number. */
const equals = (found: Json, literal: Json, ci: boolean): boolean => {
  if (!isScalar(found) || !isScalar(literal)) return false
  if (typeof literal === 'number') return numberOf(found) === literal
  if (typeof literal === 'boolean' || typeof found === 'boolean')
    return String(found) === String(literal)
  return typeof found === 'string' && plain(found, ci) === plain(literal, ci)
}

const order = (found: Json, literal: Json, ci: boolean): number =>
  typeof found === 'string' && typeof literal === 'string'
    ? byCodePoint(plain(found, ci), plain(literal, ci))
    : Math.sign(numberOf(found) - numberOf(literal))

const points = (text: string) =>
  Array.from(text, (it) => (it.codePointAt(0) as number).toString(16).padStart(6, '0')).join('')
const byCodePoint = (left: string, right: string): number =>
  points(left) === points(right) ? 0 : points(left) < points(right) ? -1 : 1

/** Of events in order; `undefined` is a missing value. */
export const reduce = (
  reducer: Reducer,
  { prop = [], min_frequency = 2, timezone = 'UTC' }: Reducing,
  events: readonly { readonly te: number; readonly properties: Json }[],
): Json | undefined => {
  const values = events.map(({ properties }) => valueAt(properties, prop) ?? null)
  const numbers = values.filter((it) => !Number.isNaN(numberOf(it)))
  const sorted = numbers.map(numberOf).sort((a, b) => a - b)
  const sum = () => numbers.reduce<bigint>((total, it) => total + millionths(it), 0n)
  const texts = values.flat().flatMap((it) => (isScalar(it) ? [String(it).normalize('NFC')] : []))
  const different = () => [...new Set(texts)].sort(byCodePoint)
  const times = (text: string) => texts.filter((it) => it === text).length
  const frequent = () => different().filter((text) => times(text) >= min_frequency)
  const made: { readonly [R in Reducer]: () => Json | undefined } = {
    count: () => events.length,
    sum: () => nearest(sum(), 1),
    avg: () => (numbers.length === 0 ? undefined : nearest(sum(), numbers.length)),
    min: () => sorted[0],
    max: () => sorted.at(-1),
    first: () => values.find(isScalar),
    last: () => values.findLast(isScalar),
    distinct: () => different().length || undefined,
    unique: () => (texts.length === 0 ? undefined : different()),
    mode: () => frequent().sort((a, b) => times(b) - times(a))[0],
    distinct_days: () => new Set(events.map(({ te }) => localDay(timezone, te))).size || undefined,
  }
  return made[reducer]()
}

/** Rounded at the sixth decimal of how the number is written. */
const millionths = (value: Json): bigint => {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)\.?(\d*)$/.exec(mantissa) ?? []
  const shift = Number(exponent) + 7 - fraction.length
  const digits = BigInt(whole + fraction + '0'.repeat(Math.max(0, shift)))
  const rounded = (digits / 10n ** BigInt(Math.max(0, -shift)) + 5n) / 10n
  return sign === '-' ? -rounded : rounded
}

/** The number nearest to an exact fraction, by way of more digits than any number has. */
const nearest = (sum: bigint, count: number): number =>
  Number(`${(sum * 10n ** 60n) / BigInt(count)}e-66`) + 0
