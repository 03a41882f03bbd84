// Reading what where(…) says of an event: its properties, what it shares with an earlier step, and the
// nested event that makes a sequence of the two.
import type { Json, JsonObject } from '../../message.ts'
import { eachOf, readComparison } from './comparison.ts'
import type { Cursor } from './cursor.ts'
import { readJunction } from './junction.ts'
import { bracketed, readPathText } from './value.ts'

/** A nested event: the steps after the one it stands in. */
export type Nested = {
  readonly steps: readonly JsonObject[]
  readonly happened: boolean
  readonly at: number
}

export type Where = { readonly where: JsonObject | null; readonly nested: Nested | null }

export type Within = {
  /** Reads event(…) in a where; absent where none may stand. */
  readonly event: ((cursor: Cursor) => Nested) | null
  /** What property(parent: …) means here. */
  readonly parent: string | null
}

export const readWhere = (cursor: Cursor, within: Within): Where => {
  const found = new Map<JsonObject, Nested>()
  const tree = readJunction(cursor, () => readPrimary(cursor, within, found))
  const parts = Array.isArray(tree['all']) ? (tree['all'] as readonly JsonObject[]) : [tree]
  const rest: JsonObject[] = []
  let nested: Nested | null = null
  for (const part of parts) {
    const here = takeNested(cursor, part, found)
    if (here === null) rest.push(part)
    else if (nested === null) nested = settled(cursor, here)
    else return cursor.refuse('one event within an event; more of them make a sequence', here.at)
  }
  for (const { at } of found.values())
    cursor.refuse('an event within an event to be joined to the rest by AND', at)
  const [only] = rest
  if (only === undefined) return { where: null, nested }
  if (rest.length === 1) return { where: only, nested }
  return { where: cursor.like({ all: rest }, tree, cursor.placeOf(tree, '')), nested }
}

/** NOT event(…) is the event that was not. */
const takeNested = (
  cursor: Cursor,
  part: JsonObject,
  found: Map<JsonObject, Nested>,
): Nested | null => {
  const direct = found.get(part)
  if (direct !== undefined) {
    found.delete(part)
    return direct
  }
  const inner = part['not'] as JsonObject | undefined
  const nested = inner === undefined ? null : takeNested(cursor, inner, found)
  return nested === null ? null : { ...nested, happened: !nested.happened }
}

/** What did not happen has nothing after it. */
const settled = (cursor: Cursor, nested: Nested): Nested => {
  const { steps, happened, at } = nested
  const [step, ...others] = steps as readonly [JsonObject]
  if (happened) return nested
  if (others.length > 0)
    return cursor.refuse('only the last event of a sequence not to have happened', at)
  return { ...nested, steps: [cursor.like({ ...step, then: 'did_not' }, step, at)] }
}

const readPrimary = (
  cursor: Cursor,
  within: Within,
  found: Map<JsonObject, Nested>,
): JsonObject => {
  const { at, text } = cursor.peek()
  if (text === 'event' && within.event !== null) {
    const nested = within.event(cursor)
    const mark: JsonObject = {}
    found.set(mark, nested)
    return mark
  }
  if (!cursor.skip('property')) return cursor.refuse("property('…'), NOT or a bracket")
  const path = bracketed(cursor, () => readPathText(cursor))
  return eachOf(
    cursor,
    readComparison(cursor, () => readOperand(cursor, within)),
    (comparison) => cursor.like({ prop: path, ...comparison }, comparison, at),
  )
}

/** trait('city') of the user, or property(a: 'cart_id') of the step called a. */
const readOperand = (cursor: Cursor, { parent }: Within): Json => {
  const { at, text } = cursor.peek()
  if (text === 'computed')
    return cursor.refuse(
      "a literal or a trait: a property is not compared with a computed trait; compare a measure, as in max(property('price')) >= computed('limit')",
      at,
    )
  if (cursor.skip('trait'))
    return cursor.note({ trait: bracketed(cursor, () => readPathText(cursor)) }, at)
  if (!cursor.skip('property'))
    return cursor.refuse(
      "a text in quotes, a number, true, false, trait('…') or property(step: '…')",
    )
  return bracketed(cursor, () => {
    const label = cursor.peek()
    if (label.type !== 'name') return cursor.refuse("a step, as in property(parent: 'cart_id')")
    cursor.take()
    cursor.expect(':')
    const prop = readPathText(cursor)
    if (label.text !== 'parent') return cursor.note({ step: label.text, prop }, label.at)
    if (parent === null) return cursor.refuse('an event around this one', label.at)
    return cursor.note({ step: parent, prop }, label.at)
  })
}
