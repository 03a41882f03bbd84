// Reading how something is compared: a sign and what stands to its right, or .operator(…).
import type { Json, JsonObject } from '../../message.ts'
import { dateOperators, spanOperators } from '../date.ts'
import { listOperators, presenceOperators, textOperators } from '../value.ts'
import type { Cursor } from './cursor.ts'
import { bracketed, readDuration, readList, readLiteral, readString, tryLiteral } from './value.ts'

const signs: Readonly<Record<string, string>> = {
  ...{ '=': 'eq', '==': 'eq', '!=': 'neq', '>': 'gt', '>=': 'gte', '<': 'lt', '<=': 'lte' },
}

const words: Readonly<Record<string, string>> = {
  ...{ equals: 'eq', differs: 'neq', greater_than: 'gt', at_least: 'gte' },
  ...{ less_than: 'lt', at_most: 'lte' },
}

export const signOf = (op: string): string | undefined =>
  Object.keys(signs).find((sign) => signs[sign] === op)

/** What stands to the right of a sign when it is no literal: the value of "ref". */
export type ReadOperand = () => Json

/** {"op", "value" or "ref", "ci", "timezone"}; `contains` of several texts is a list of such. */
export const readComparison = (cursor: Cursor, operand: ReadOperand): readonly JsonObject[] => {
  const modifiers: Record<string, Json> = {}
  for (;;) {
    const { at, type, text } = cursor.peek()
    const op = type === 'sign' ? signs[text] : undefined
    if (op !== undefined) {
      cursor.take()
      return [scalar(cursor, { op, ...modifiers }, { at, operand })]
    }
    if (!cursor.skip('.'))
      return cursor.refuse('a comparison such as = 5, >= 2, .exists() or .one_of(…)')
    const name = cursor.peek()
    if (cursor.skip('ignore_case')) {
      bracketed(cursor, () => null)
      modifiers['ci'] = true
    } else if (cursor.skip('timezone'))
      modifiers['timezone'] = bracketed(cursor, () => readString(cursor, 'a time zone'))
    else return method(cursor, modifiers, { at: name.at, operand })
  }
}

type Place = { readonly at: number; readonly operand: ReadOperand }

const scalar = (cursor: Cursor, members: JsonObject, { at, operand }: Place): JsonObject => {
  const place = cursor.peek().at
  const value = tryLiteral(cursor)
  return value === undefined
    ? cursor.note({ ...members, ref: operand() }, at, { ref: place })
    : cursor.note({ ...members, value }, at, { value: place })
}

const isIn = (name: string, set: readonly string[]): boolean => set.includes(name)

const method = (cursor: Cursor, modifiers: JsonObject, place: Place): readonly JsonObject[] => {
  const name = cursor.peek().text.toLowerCase()
  const known = [...presenceOperators, ...textOperators, ...listOperators, 'matches']
  const dated = [...dateOperators, ...spanOperators]
  if (!isIn(name, [...Object.keys(words), ...known, ...dated]))
    return cursor.refuse(
      `one of ${[...known, ...dated].join(', ')}, ignore_case or timezone after the dot`,
    )
  cursor.take()
  return bracketed(cursor, () => {
    const op = words[name] ?? name
    const members = { op, ...modifiers }
    const { at } = cursor.peek()
    const made = (value: Json) => cursor.note({ ...members, value }, place.at, { value: at })
    if (isIn(op, presenceOperators)) return [cursor.note(members, place.at)]
    if (words[name] !== undefined) return [scalar(cursor, members, place)]
    if (isIn(op, dateOperators)) return [made(readString(cursor, 'a date such as 2026-01-31'))]
    if (isIn(op, spanOperators)) return [made(readDuration(cursor))]
    if (isIn(op, listOperators)) return [made(readList(cursor, () => readLiteral(cursor)))]
    if (op === 'contains') return readList(cursor, () => readString(cursor, 'a text')).map(made)
    return [made(readString(cursor, 'a text'))]
  })
}

/** Of several comparisons of one subject any is enough. */
export const eachOf = (
  cursor: Cursor,
  comparisons: readonly JsonObject[],
  make: (comparison: JsonObject) => JsonObject,
): JsonObject => {
  const [first, ...others] = comparisons.map((comparison) => make(comparison))
  if (others.length === 0) return first as JsonObject
  return cursor.note({ any: [first as JsonObject, ...others] }, cursor.peek().at)
}
