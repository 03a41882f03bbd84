// The naive evaluator's values: how they are compared, and what is made of those of a list of events.
import { dateOf, durationOf, localDay } from '../support/calendar.ts'
import { millionths, nearest } from '../support/decimals.ts'
import type { Comparison, Json, Path, Reducer, Reducing } from '../support/language.ts'
import { once } from '../support/once.ts'
import type { Heard } from './people.ts'

/** "[*]" stands for each element of a list. */
const keysOf = once((path: string) => path.replaceAll('[*]', '.[*]').split('.'))

const below = (here: Json, key: string): readonly Json[] => {
  if (Array.isArray(here)) return key === '[*]' ? here : []
  const isThere = here !== null && typeof here === 'object' && Object.hasOwn(here, key)
  return isThere ? [Object(here)[key]] : []
}

const valuesAt = (root: Json, path: Path): readonly Json[] => {
  const [first = '', ...deeper] = typeof path === 'string' ? keysOf(path) : path
  return deeper.reduce((found, key) => found.flatMap((it) => below(it, key)), below(root, first))
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
  const operator = operators[op]
  if (!operator) throw new Error(`the oracle does not know the comparator ${op}`)
  return operator({ found, value, ci, at, zone: timezone ?? zone })
}

type Compared = When & { readonly found: Json; readonly value: Json; readonly ci: boolean }

const operators: { readonly [op: string]: (it: Compared) => boolean } = {
  never: () => false,
  exists: () => true,
  absent: () => false,
  eq: ({ found, value, ci }) => equals(found, value, ci),
  neq: ({ found, value, ci }) => !equals(found, value, ci),
  one_of: ({ found, value, ci }) => listOf(value).some((it) => equals(found, it, ci)),
  none_of: ({ found, value, ci }) => !listOf(value).some((it) => equals(found, it, ci)),
  gt: (it) => order(it) > 0,
  gte: (it) => order(it) >= 0,
  lt: (it) => order(it) < 0,
  lte: (it) => order(it) <= 0,
  contains: (it) => says(it, (whole, part) => whole.includes(part)),
  omits: (it) => !says(it, (whole, part) => whole.includes(part)),
  starts_with: (it) => says(it, (whole, part) => whole.startsWith(part)),
  ends_with: (it) => says(it, (whole, part) => whole.endsWith(part)),
  matches: (it) => says(it, (whole) => patternsOf(it.ci)(String(it.value)).test(whole)),
  contains_any: (it) => Array.isArray(it.found) && listOf(it.value).some(isIn(it)),
  contains_all: (it) => Array.isArray(it.found) && listOf(it.value).every(isIn(it)),
  contains_none: (it) => Array.isArray(it.found) && !listOf(it.value).some(isIn(it)),
  before_date: (it) => date(it.found, it) < date(it.value, it),
  after_date: (it) => date(it.found, it) >= date(it.value, it),
  within_last: (it) => age(it) >= 0 && age(it) < span(it),
  before_last: (it) => age(it) >= span(it),
  within_next: (it) => age(it) < 0 && age(it) >= -span(it),
  after_next: (it) => age(it) < -span(it),
}

const says = (it: Compared, test: (whole: string, part: string) => boolean) => {
  const part = plain(String(it.value), it.ci)
  return listOf(it.found).some((text) => typeof text === 'string' && test(plain(text, it.ci), part))
}
const isIn = (it: Compared) => (wanted: Json) =>
  listOf(it.found).some((element) => equals(element, wanted, it.ci))
const date = (value: Json, { zone }: When) => dateOf(value, zone) ?? NaN
const age = (it: Compared) => it.at - date(it.found, it)
const span = ({ value }: Compared) => durationOf(String(value))
const patternsOf = once((ci: boolean) => once((it: string) => new RegExp(it, ci ? 'iu' : 'u')))
const listOf = (it: Json): readonly Json[] => (Array.isArray(it) ? it : [it])
const composed = once((text: string) => text.normalize('NFC'))
const plain = (text: string, ci: boolean) => (ci ? composed(text).toLowerCase() : composed(text))

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

const order = ({ found, value, ci }: Compared): number =>
  typeof found === 'string' && typeof value === 'string'
    ? byCodePoint(plain(found, ci), plain(value, ci))
    : numberOf(found) - numberOf(value)

const points = once((text: string) =>
  Array.from(text, (it) => (it.codePointAt(0) as number).toString(16).padStart(6, '0')).join(''),
)
const byCodePoint = (left: string, right: string): number =>
  points(left) === points(right) ? 0 : points(left) < points(right) ? -1 : 1

/** Of events in order; `undefined` is a missing value. */
export const reduce = (
  reducer: Reducer,
  { prop = [], min_frequency = 2, timezone }: Reducing,
  { events, zone }: { readonly events: readonly Heard[]; readonly zone: string },
): Json | undefined => {
  if (reducer === 'count') return events.length
  if (reducer === 'distinct_days')
    return new Set(events.map(({ te }) => localDay(timezone ?? zone, te))).size || undefined
  const values = events.map(({ properties }) => valueAt(properties, prop) ?? null)
  if (reducer === 'first') return values.find(isScalar)
  if (reducer === 'last') return values.findLast(isScalar)
  const numbers = values.filter((it) => !Number.isNaN(numberOf(it)))
  const sorted = () => numbers.map(numberOf).sort((a, b) => a - b)
  if (reducer === 'min') return sorted()[0]
  if (reducer === 'max') return sorted().at(-1)
  const sum = () => numbers.reduce<bigint>((total, it) => total + millionths(it), 0n)
  if (reducer === 'sum') return nearest(sum(), 1)
  if (reducer === 'avg') return numbers.length === 0 ? undefined : nearest(sum(), numbers.length)
  const times = new Map<string, number>()
  for (const text of values.flat().filter(isScalar).map(String).map(composed))
    times.set(text, (times.get(text) ?? 0) + 1)
  if (reducer === 'distinct') return times.size || undefined
  if (reducer === 'unique') return times.size ? [...times.keys()].sort(byCodePoint) : undefined
  const frequent = [...times].filter(([, count]) => count >= min_frequency)
  return frequent.sort(([a, i], [b, j]) => j - i || byCodePoint(a, b))[0]?.[0]
}
