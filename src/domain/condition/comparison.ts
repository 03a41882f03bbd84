// Parsing one comparison of a condition: {"trait"|"prop": path, "op": …, "value" or "ref": …}.
import type { Json } from '../message.ts'
import { dateOperators, readDate, spanOperators } from './date.ts'
import { durationAt, timezoneAt } from './parse-window.ts'
import { anyElement, type Path, readPath } from './path.ts'
import { parsePattern } from './pattern.ts'
import type { Reading } from './reading.ts'
import {
  type Comparison,
  listOperators,
  presenceOperators,
  type Ref,
  scalarOperators,
  type Test,
  textOperators,
} from './value.ts'

export const operators = [
  ...scalarOperators,
  ...presenceOperators,
  ...textOperators,
  'matches',
  ...listOperators,
  ...dateOperators,
  ...spanOperators,
] as const

export type Operator = (typeof operators)[number]

/** Values of one_of and its kin. */
const valuesMax = 1_000

/** What a comparison may say beside its operator. */
export type Allowed = {
  /** Keys of the object that are not the comparison's. */
  readonly keys: readonly string[]
  readonly operators: readonly Operator[]
  readonly ref: (at: Reading) => Ref | null
  /** Whether the value compared is always a number. */
  readonly numeric?: boolean
}

export const parseTest = (
  at: Reading,
  subject: 'trait' | 'prop',
  allowed: Omit<Allowed, 'keys'>,
): Test | null => {
  at.leaf()
  const path = pathAt(at.in(subject))
  const comparison = comparisonAt(at, { ...allowed, keys: [subject] })
  return path === null || comparison === null ? null : { path, comparison }
}

export const pathAt = (at: Reading): Path | null =>
  readPath(at.value) ??
  at.refuse('expected a name such as "plan.tier" or "items[*].sku", or a list of keys')

/** A path to one value. */
export const singlePathAt = (at: Reading): Path | null => {
  const path = pathAt(at)
  return path?.includes(anyElement)
    ? at.refuse('expected a path to one value, without "[*]"')
    : path
}

/** "trait:plan.tier" or {"trait": path}; `undefined` for what is about no trait. */
export const traitRefAt = (at: Reading): Ref | null | undefined => {
  const { value } = at
  if (typeof value === 'string' && value.startsWith('trait:')) {
    const path = readPath(value.slice('trait:'.length))
    return path === null || path.includes(anyElement)
      ? at.refuse('expected a trait such as "trait:credit_limit"')
      : { type: 'trait', path }
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'trait'))
    return undefined
  at.only(['trait'])
  const path = singlePathAt(at.in('trait'))
  return path === null ? null : { type: 'trait', path }
}

const isIn = <K extends Operator>(op: Operator, set: readonly K[]): op is K =>
  (set as readonly Operator[]).includes(op)

export const comparisonAt = (at: Reading, allowed: Allowed): Comparison | null => {
  const op = at.in('op').oneOf(allowed.operators)
  if (op === null) return null
  if (isIn(op, presenceOperators)) {
    at.only([...allowed.keys, 'op'])
    return { op }
  }
  if (isIn(op, dateOperators) || isIn(op, spanOperators)) return dateComparison(at, op, allowed)
  const foldCase = foldCaseAt(at.in('ci'))
  if (isIn(op, scalarOperators)) {
    const operand = scalarOperand(at, allowed)
    return operand === null || foldCase === null ? null : { op, ...operand, foldCase }
  }
  at.only([...allowed.keys, 'op', 'value', 'ci'])
  const value = at.in('value')
  if (isIn(op, listOperators)) {
    const values = scalarsAt(value)
    return values === null || foldCase === null ? null : { op, value: values, foldCase }
  }
  const text = value.text()
  if (text === null || foldCase === null) return null
  if (op !== 'matches') return { op, value: text, foldCase }
  const pattern = parsePattern(text)
  return typeof pattern === 'string'
    ? value.refuse(pattern)
    : { op, value: text, foldCase, pattern }
}

type Operand = { readonly value: string | number | boolean } | { readonly ref: Ref }

const scalarOperand = (at: Reading, { keys, ref, numeric = false }: Allowed): Operand | null => {
  if (at.in('ref').given()) {
    at.only([...keys, 'op', 'ref', 'ci'])
    const found = ref(at.in('ref'))
    return found === null ? null : { ref: found }
  }
  at.only([...keys, 'op', 'value', 'ref', 'ci'])
  const { value, refuse } = at.in('value')
  if (numeric && typeof value !== 'number') return refuse('expected a finite number')
  if (!isScalar(value))
    return refuse(
      `expected a string, a finite number or a boolean${value === null ? '; for a missing value use "absent"' : ''}`,
    )
  return { value }
}

const dateComparison = (
  at: Reading,
  op: Extract<Operator, (typeof dateOperators)[number] | (typeof spanOperators)[number]>,
  { keys }: Allowed,
): Comparison | null => {
  at.only([...keys, 'op', 'value', 'timezone'])
  const timezone = timezoneAt(at.in('timezone'))
  const value = at.in('value')
  if (isIn(op, dateOperators)) {
    const than = dateAt(value, timezone ?? 'UTC')
    return than === null || timezone === null ? null : { op, than, timezone }
  }
  const ms = durationAt(value)
  return ms === null || timezone === null ? null : { op, ms, timezone }
}

export const dateAt = (at: Reading, timezone: string): number | null =>
  readDate(at.value, timezone) ??
  at.refuse('expected a date such as "2026-01-31" or "2026-01-31T09:00:00Z"')

const foldCaseAt = (at: Reading): boolean | null => {
  if (!at.given()) return false
  return typeof at.value === 'boolean' ? at.value : at.refuse('expected true or false')
}

const scalarsAt = (at: Reading): readonly (string | number | boolean)[] | null => {
  const found = at.value
  const sound =
    Array.isArray(found) && found.length > 0 && found.length <= valuesMax && found.every(isScalar)
  return sound
    ? (found as readonly (string | number | boolean)[])
    : at.refuse(`expected a list of 1 to ${valuesMax} strings, numbers or booleans`)
}

const isScalar = (value: Json | undefined): value is string | number | boolean =>
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))
