// Comparing a JSON value with a literal: two-valued, with the one fixed coercion table of conditions.
import type { Json } from '../message.ts'
import type { Measure } from './condition.ts'
import {
  type DateOperator,
  dateHolds,
  readDate,
  type SpanOperator,
  spanHolds,
  spanTurns,
} from './date.ts'
import { anyElement, type Path, valueAt, valuesAt } from './path.ts'
import { matches, type Pattern } from './pattern.ts'

export { type Path, valueAt }

type Scalar = string | number | boolean

export const scalarOperators = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte'] as const
export const presenceOperators = ['exists', 'absent'] as const
export const textOperators = ['contains', 'omits', 'starts_with', 'ends_with'] as const
export const listOperators = [
  'one_of',
  'none_of',
  'contains_any',
  'contains_all',
  'contains_none',
] as const

type ScalarOperator = (typeof scalarOperators)[number]
type TextOperator = (typeof textOperators)[number]
type ListOperator = (typeof listOperators)[number]

/** `foldCase` compares strings without regard to case. */
export type Comparison =
  | { readonly op: (typeof presenceOperators)[number] }
  | { readonly op: ScalarOperator; readonly value: Scalar; readonly foldCase: boolean }
  | { readonly op: ScalarOperator; readonly ref: Ref; readonly foldCase: boolean }
  | { readonly op: TextOperator; readonly value: string; readonly foldCase: boolean }
  | { readonly op: ListOperator; readonly value: readonly Scalar[]; readonly foldCase: boolean }
  | {
      readonly op: 'matches'
      readonly value: string
      readonly foldCase: boolean
      readonly pattern: Pattern
    }
  /** Dates: `than` is epoch ms; what is found may be a date alone, which is a day of the time zone. */
  | { readonly op: DateOperator; readonly than: number; readonly timezone: string }
  | { readonly op: SpanOperator; readonly ms: number; readonly timezone: string }

export type Test = { readonly path: Path; readonly comparison: Comparison }

/** A fact of the user that stands where a literal could. */
export type Ref =
  | { readonly type: 'trait'; readonly path: Path }
  | { readonly type: 'measure'; readonly measure: Measure }

/** What a comparison may look at beside the value. */
export type Seen = {
  /** The instant it is asked at, epoch ms. */
  readonly at: number
  readonly ref: (ref: Ref) => Json | undefined
}

/** A path through lists holds for any of its elements; `absent` is the contrary of `exists`. */
export const passes = ({ path, comparison }: Test, root: Json | undefined, seen: Seen): boolean => {
  if (!path.includes(anyElement)) return compare(comparison, valueAt(root, path), seen)
  const found = valuesAt(root, path)
  return comparison.op === 'absent'
    ? found.length === 0
    : found.some((value) => compare(comparison, value, seen))
}

/** The first instant after `at` at which time alone may turn the comparison over. */
export const turnsAfter = ({ path, comparison }: Test, root: Json | undefined, at: number) => {
  if (!('ms' in comparison)) return Number.POSITIVE_INFINITY
  let first = Number.POSITIVE_INFINITY
  for (const found of valuesAt(root, path))
    first = Math.min(first, comparisonTurns(comparison, found, at))
  return first
}

/** As `turnsAfter`, for the value that is found. */
export const comparisonTurns = (
  comparison: Comparison,
  found: Json | undefined,
  at: number,
): number => {
  if (!('ms' in comparison)) return Number.POSITIVE_INFINITY
  const { op, ms, timezone } = comparison
  const date = readDate(found, timezone)
  return date === null ? Number.POSITIVE_INFINITY : spanTurns(op, { found: date, ms }, at)
}

export const compare = (comparison: Comparison, found: Json | undefined, seen: Seen): boolean => {
  if ('ref' in comparison) {
    const { op, ref, foldCase } = comparison
    const value = seen.ref(ref)
    return isScalar(value) && compare({ op, value, foldCase }, found, seen)
  }
  const present = found !== undefined && found !== null
  switch (comparison.op) {
    case 'absent':
      return !present
    case 'exists':
      return present
    case 'eq':
      return present && equal(found, comparison.value, comparison.foldCase)
    case 'neq':
      return present && !equal(found, comparison.value, comparison.foldCase)
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return present && ordered(comparison.op, order(found, comparison.value, comparison.foldCase))
    case 'contains':
    case 'omits':
    case 'starts_with':
    case 'ends_with':
    case 'matches':
      return present && compareText(comparison, found)
    case 'one_of':
    case 'none_of':
    case 'contains_any':
    case 'contains_all':
    case 'contains_none':
      return present && compareList(comparison, found)
    case 'before_date':
    case 'after_date': {
      const date = readDate(found, comparison.timezone)
      return date !== null && dateHolds(comparison.op, date, comparison.than)
    }
    case 'within_last':
    case 'within_next':
    case 'before_last':
    case 'after_next': {
      const date = readDate(found, comparison.timezone)
      return date !== null && spanHolds(comparison.op, seen.at - date, comparison.ms)
    }
  }
}

const isScalar = (value: Json | undefined): value is Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

const ordered = (op: 'gt' | 'gte' | 'lt' | 'lte', sign: number | null): boolean => {
  if (sign === null) return false
  switch (op) {
    case 'gt':
      return sign > 0
    case 'gte':
      return sign >= 0
    case 'lt':
      return sign < 0
    case 'lte':
      return sign <= 0
  }
}

/** Of a list, any element. */
const compareText = (
  comparison: Extract<Comparison, { op: TextOperator | 'matches' }>,
  found: Json,
): boolean => {
  const { op, foldCase } = comparison
  const any = (holds: (text: string) => boolean) =>
    (Array.isArray(found) ? (found as readonly Json[]) : [found]).some(
      (element) => typeof element === 'string' && holds(element),
    )
  if (op === 'matches')
    return any((text) => matches(comparison.pattern, text.normalize('NFC'), foldCase))
  const wanted = textOf(comparison.value, foldCase)
  switch (op) {
    case 'contains':
      return any((text) => textOf(text, foldCase).includes(wanted))
    case 'omits':
      return !any((text) => textOf(text, foldCase).includes(wanted))
    case 'starts_with':
      return any((text) => textOf(text, foldCase).startsWith(wanted))
    case 'ends_with':
      return any((text) => textOf(text, foldCase).endsWith(wanted))
  }
}

const compareList = (
  { op, value, foldCase }: Extract<Comparison, { op: ListOperator }>,
  found: Json,
): boolean => {
  const elements = Array.isArray(found) ? (found as readonly Json[]) : null
  const has = (wanted: Scalar) =>
    elements?.some((element) => equal(element, wanted, foldCase)) ?? false
  switch (op) {
    case 'one_of':
      return value.some((wanted) => equal(found, wanted, foldCase))
    case 'none_of':
      return !value.some((wanted) => equal(found, wanted, foldCase))
    case 'contains_any':
      return value.some(has)
    case 'contains_all':
      return elements !== null && value.every(has)
    case 'contains_none':
      return elements !== null && !value.some(has)
  }
}

const equal = (found: Json, wanted: Scalar, foldCase: boolean): boolean => {
  if (typeof wanted === 'number') return numberOf(found) === wanted
  if (typeof wanted === 'boolean') return found === wanted || found === String(wanted)
  if (typeof found === 'boolean') return String(found) === wanted
  return typeof found === 'string' && textOf(found, foldCase) === textOf(wanted, foldCase)
}

/** The sign of found − wanted, `null` when the two cannot be ordered. */
const order = (found: Json, wanted: Scalar, foldCase: boolean): number | null => {
  if (typeof found === 'string' && typeof wanted === 'string')
    return compareCodePoints(textOf(found, foldCase), textOf(wanted, foldCase))
  const [left, right] = [numberOf(found), numberOf(wanted)]
  return left === null || right === null ? null : left - right
}

const decimal = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/

/** A finite number, or a string that is written exactly like a decimal one. */
export const numberOf = (value: Json): number | null => {
  const number = typeof value === 'string' && decimal.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

const textOf = (text: string, foldCase: boolean): string => {
  const normal = text.normalize('NFC')
  return foldCase ? normal.toLowerCase() : normal
}

/** JavaScript orders by UTF-16 unit, which puts astral characters before U+E000; this does not. */
export const compareCodePoints = (left: string, right: string): number => {
  const length = Math.min(left.length, right.length)
  for (let at = 0; at < length; at++) {
    const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)]
    if (a !== b) return rank(a) - rank(b)
  }
  return left.length - right.length
}

const rank = (unit: number): number => {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
