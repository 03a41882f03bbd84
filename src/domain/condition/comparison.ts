// Parsing one comparison of a condition: {"trait"|"prop": path, "op": …, "value": …}.
import type { Json } from '../message.ts'
import type { Reading } from './reading.ts'
import {
  type Comparison,
  listOperators,
  presenceOperators,
  scalarOperators,
  type Test,
  textOperators,
} from './value.ts'

const operators = [...scalarOperators, ...presenceOperators, ...textOperators, ...listOperators]

/** Values of one_of and its kin. */
const valuesMax = 1_000

export const parseTest = (at: Reading, subject: 'trait' | 'prop'): Test | null => {
  at.leaf()
  const path = pathAt(at.in(subject))
  const op = at.in('op').oneOf(operators)
  if (op === null) return null
  const comparison = comparisonOf(at, op, subject)
  return path === null || comparison === null ? null : { path, comparison }
}

/** "plan.tier" walks keys at the dots; a list of keys takes each literally. */
const pathAt = (at: Reading): readonly string[] | null => {
  const keys = typeof at.value === 'string' ? at.value.split('.') : at.value
  const sound =
    Array.isArray(keys) &&
    keys.length > 0 &&
    keys.every((key: Json) => typeof key === 'string' && key !== '')
  if (!sound) return at.refuse('expected a name such as "plan.tier", or a list of keys')
  if (keys.includes('[*]')) return at.refuse('expected plain keys: "[*]" cannot be evaluated yet')
  return keys as readonly string[]
}

type Op = (typeof operators)[number]

const isIn = <K extends Op>(op: Op, set: readonly K[]): op is K =>
  (set as readonly Op[]).includes(op)

const comparisonOf = (at: Reading, op: Op, subject: string): Comparison | null => {
  if (isIn(op, presenceOperators)) {
    at.only([subject, 'op'])
    return { op }
  }
  at.only([subject, 'op', 'value', 'ci'])
  const foldCase = foldCaseAt(at.in('ci'))
  if (foldCase === null) return null
  const value = at.in('value')
  if (isIn(op, textOperators)) {
    const text = value.text()
    return text === null ? null : { op, value: text, foldCase }
  }
  if (isIn(op, listOperators)) {
    const values = scalarsAt(value)
    return values === null ? null : { op, value: values, foldCase }
  }
  if (!isScalar(value.value))
    return value.refuse(
      `expected a string, a finite number or a boolean${value.value === null ? '; for a missing value use "absent"' : ''}`,
    )
  return { op, value: value.value, foldCase }
}

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
