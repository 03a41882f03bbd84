// The naive evaluator's comparisons: every comparator on a missing or null value is false, except absent.
import { dateOf, durationOf } from './time.ts'

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

export type Path = string | readonly string[]

export type Comparison = {
  readonly op: string
  readonly value?: Json
  readonly ci?: boolean
  readonly timezone?: string
}

export type When = { readonly at: number; readonly zone: string }

/** "[*]" stands for each element of a list. */
const keysOf = (path: Path) =>
  typeof path === 'string' ? path.replaceAll('[*]', '.[*]').split('.') : path

const valuesAt = (root: Json | undefined, path: Path): readonly (Json | undefined)[] => {
  let here = [root]
  for (const key of keysOf(path))
    here = here.flatMap((it) => {
      if (key === '[*]') return Array.isArray(it) ? (it as Json[]) : []
      if (it === undefined || it === null || typeof it !== 'object' || Array.isArray(it)) return []
      return Object.entries(it).flatMap(([name, value]) => (name === key ? [value as Json] : []))
    })
  return here
}

export const valueAt = (root: Json, path: Path): Json | undefined => valuesAt(root, path)[0]

/** Through a list: whether it holds for any element; `absent` where nothing is found at all. */
export const passes = (
  { path, ...test }: Comparison & { readonly path: Path },
  root: Json,
  when: When,
): boolean => {
  if (!keysOf(path).includes('[*]')) return compares(test, valueAt(root, path), when)
  const found = valuesAt(root, path).filter((it) => it !== null && it !== undefined)
  return test.op === 'absent' ? found.length === 0 : found.some((it) => compares(test, it, when))
}

export const compares = (
  { op, value, ci, timezone }: Comparison,
  found: Json | undefined,
  { at, zone }: When = { at: 0, zone: 'UTC' },
): boolean => {
  if (found === undefined || found === null) return op === 'absent'
  const literal = value as Json
  const literals = Array.isArray(literal) ? (literal as readonly Json[]) : [literal]
  const elements = Array.isArray(found) ? (found as readonly Json[]) : [found]
  const same = (left: Json, right: Json) => equals(left, right, ci === true)
  const text = (test: (whole: string, part: string) => boolean) =>
    elements.some(
      (it) =>
        typeof it === 'string' && test(plain(it, ci === true), plain(String(literal), ci === true)),
    )
  switch (op) {
    case 'absent':
      return false
    case 'exists':
      return true
    case 'eq':
      return same(found, literal)
    case 'neq':
      return !same(found, literal)
    case 'one_of':
      return literals.some((it) => same(found, it))
    case 'none_of':
      return !literals.some((it) => same(found, it))
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte': {
      const sign = order(found, literal, ci === true)
      if (sign === null) return false
      if (sign === 0) return op === 'gte' || op === 'lte'
      return sign > 0 ? op === 'gt' || op === 'gte' : op === 'lt' || op === 'lte'
    }
    case 'contains':
      return text((whole, part) => whole.includes(part))
    case 'omits':
      return !text((whole, part) => whole.includes(part))
    case 'starts_with':
      return text((whole, part) => whole.startsWith(part))
    case 'ends_with':
      return text((whole, part) => whole.endsWith(part))
    case 'contains_any':
      return Array.isArray(found) && literals.some((it) => elements.some((e) => same(e, it)))
    case 'contains_all':
      return Array.isArray(found) && literals.every((it) => elements.some((e) => same(e, it)))
    case 'contains_none':
      return Array.isArray(found) && !literals.some((it) => elements.some((e) => same(e, it)))
    case 'matches':
      return text((whole) => new RegExp(String(literal), ci ? 'iu' : 'u').test(whole))
    default:
      return lies(op, { found, literal, at, zone: timezone ?? zone })
  }
}

type Dated = When & { readonly found: Json; readonly literal: Json }

/** How a date lies to another, or to the instant. */
const lies = (op: string, { found, literal, at, zone }: Dated): boolean => {
  const date = dateOf(found, zone)
  if (date === null) return false
  if (op === 'before_date') return date < (dateOf(literal, zone) as number)
  if (op === 'after_date') return date >= (dateOf(literal, zone) as number)
  const [age, span] = [at - date, durationOf(String(literal))]
  switch (op) {
    case 'within_last':
      return age >= 0 && age < span
    case 'before_last':
      return age >= span
    case 'within_next':
      return age < 0 && age >= -span
    case 'after_next':
      return age < -span
    default:
      throw new Error(`the oracle does not know the comparator ${op}`)
  }
}

const plain = (text: string, ci: boolean) =>
  ci ? text.normalize('NFC').toLowerCase() : text.normalize('NFC')

const decimal = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/

export const numberOf = (value: Json): number | null => {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'string' && decimal.test(value) ? Number(value) : null
}

/** A string equals a number only where the literal is the number. */
const equals = (found: Json, literal: Json, ci: boolean): boolean => {
  if (typeof literal === 'number') return numberOf(found) === literal
  if (typeof literal === 'boolean') return String(found) === String(literal) && !isList(found)
  if (typeof found === 'boolean') return String(found) === literal
  return typeof found === 'string' && typeof literal === 'string'
    ? plain(found, ci) === plain(literal, ci)
    : false
}

export const isScalar = (value: Json | undefined): value is string | number | boolean =>
  value !== undefined && value !== null && typeof value !== 'object'

const isList = (value: Json) => typeof value === 'object'

const order = (found: Json, literal: Json, ci: boolean): number | null => {
  if (typeof found === 'string' && typeof literal === 'string')
    return byCodePoint(plain(found, ci), plain(literal, ci))
  const [left, right] = [numberOf(found), numberOf(literal)]
  return left === null || right === null ? null : Math.sign(left - right)
}

export const byCodePoint = (left: string, right: string): number => {
  const [a, b] = [[...left], [...right]]
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = (a[at]?.codePointAt(0) ?? 0) - (b[at]?.codePointAt(0) ?? 0)
    if (difference !== 0) return Math.sign(difference)
  }
  return Math.sign(a.length - b.length)
}
