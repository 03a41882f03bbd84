// The naive evaluator's comparisons: every comparator on a missing or null value is false, except absent.

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

export type Comparison = { readonly op: string; readonly value?: Json; readonly ci?: boolean }

export const valueAt = (root: Json, path: string | readonly string[]): Json | undefined => {
  let here: Json | undefined = root
  for (const key of typeof path === 'string' ? path.split('.') : path) {
    if (here === null || typeof here !== 'object' || Array.isArray(here)) return undefined
    here = Object.entries(here).find(([name]) => name === key)?.[1]
  }
  return here
}

export const compares = ({ op, value, ci }: Comparison, found: Json | undefined): boolean => {
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
    default:
      throw new Error(`the oracle does not know the comparator ${op}`)
  }
}

const plain = (text: string, ci: boolean) =>
  ci ? text.normalize('NFC').toLowerCase() : text.normalize('NFC')

const decimal = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/

const numberOf = (value: Json): number | null => {
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

const isList = (value: Json) => typeof value === 'object'

const order = (found: Json, literal: Json, ci: boolean): number | null => {
  if (typeof found === 'string' && typeof literal === 'string')
    return byCodePoint(plain(found, ci), plain(literal, ci))
  const [left, right] = [numberOf(found), numberOf(literal)]
  return left === null || right === null ? null : Math.sign(left - right)
}

const byCodePoint = (left: string, right: string): number => {
  const [a, b] = [[...left], [...right]]
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = (a[at]?.codePointAt(0) ?? 0) - (b[at]?.codePointAt(0) ?? 0)
    if (difference !== 0) return Math.sign(difference)
  }
  return Math.sign(a.length - b.length)
}
