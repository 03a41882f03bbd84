// The text form of conditions and measures, read into the JSON form.
import type { Json, JsonObject } from '../../message.ts'
import { expandReferences, type References } from '../expand.ts'
import { normalCondition, normalMeasure } from '../normal.ts'
import { type ParseOptions, parseCondition, parseMeasure } from '../parse.ts'
import { isAboutAccounts, parseUsers, quantifiers } from '../users.ts'
import { eachOf, readComparison } from './comparison.ts'
import { type Cursor, cursorOf } from './cursor.ts'
import { type Chain, measureOf, readChain, readHappened, sequenceOf } from './event.ts'
import { readJunction } from './junction.ts'
import { readSequence } from './sequence.ts'
import { Refusal } from './token.ts'
import { bracketed, readPathText, readString } from './value.ts'

/** Lines and columns from 1. */
export type TextProblem = {
  readonly line: number
  readonly column: number
  readonly message: string
}

export type ReadText =
  | { readonly ok: true; readonly json: JsonObject }
  | { readonly ok: false; readonly problems: readonly TextProblem[] }

export const textLimits = { charactersMax: 50_000 }

const utc: ParseOptions = { timezone: 'UTC' }

/** The normal JSON of a condition. Whether what it refers to is there is another question. */
export const readConditionText = (text: string, options = utc): ReadText =>
  readText(text, readCondition, (json) => {
    const expanded = expandReferences(json, placeholders)
    if (!expanded.ok) return { problems: expanded.problems, normal: json }
    const parsed = isAboutAccounts(json)
      ? parseUsers(expanded.json, options)
      : parseCondition(expanded.json, options)
    return parsed.ok
      ? { problems: [], normal: normalCondition(json) }
      : { problems: parsed.problems, normal: json }
  })

/** The normal JSON of a computed trait. */
export const readMeasureText = (text: string, options = utc): ReadText =>
  readText(
    text,
    (cursor) => measureOf(cursor, readChain(cursor, null)),
    (json) => {
      const parsed = parseMeasure(json, options)
      return parsed.ok
        ? { problems: [], normal: normalMeasure(json) }
        : { problems: parsed.problems, normal: json }
    },
  )

type Checked = {
  readonly problems: readonly { readonly path: string; readonly message: string }[]
  readonly normal: JsonObject
}

const readText = (
  text: string,
  read: (cursor: Cursor) => JsonObject,
  check: (json: JsonObject) => Checked,
): ReadText => {
  if (text.length > textLimits.charactersMax)
    return refused(text, 0, `expected at most ${textLimits.charactersMax} characters`)
  try {
    const cursor = cursorOf(text)
    const json = read(cursor)
    if (cursor.peek().type !== 'end') cursor.refuse('AND, OR or the end')
    const { problems, normal } = check(json)
    return problems.length === 0
      ? { ok: true, json: normal }
      : {
          ok: false,
          problems: problems.map(({ path, message }) =>
            placedAt(text, cursor.placeOf(json, path), message),
          ),
        }
  } catch (cause) {
    if (cause instanceof Refusal) return refused(text, cause.at, cause.message)
    throw cause
  }
}

const refused = (text: string, at: number, message: string): ReadText => ({
  ok: false,
  problems: [placedAt(text, at, message)],
})

export const placedAt = (text: string, at: number, message: string): TextProblem => {
  const before = text.slice(0, at).split('\n')
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, message }
}

/** The line a problem is in, and a mark under its column. */
export const pointAt = (text: string, { line, column }: TextProblem): string =>
  `${text.split('\n')[line - 1] ?? ''}\n${' '.repeat(column - 1)}^`

/** Stand in for what is referred to: a value of any type, and an audience of some. */
const placeholders: References = {
  audience: () => ({ where: { identified: true }, timezone: 'UTC', includeAnonymous: true }),
  computed: (key) => ({
    definition: { event: { name: key === '' ? '?' : key }, last: { prop: '?' } },
    timezone: 'UTC',
  }),
}

const readCondition = (cursor: Cursor): JsonObject =>
  readUsers(cursor) ?? readJunction(cursor, () => readPrimary(cursor))

/** ANY USERS (…): of an account's users. `null` where the condition is about each user. */
const readUsers = (cursor: Cursor): JsonObject | null => {
  const { at } = cursor.peek()
  const quantifier = quantifiers.find((word) => cursor.skip(word))
  if (quantifier === undefined) return null
  const identified = cursor.skip('IDENTIFIED') ? { identified: true } : {}
  cursor.expect('USERS')
  cursor.expect('(')
  const where = cursor.nested(() => readJunction(cursor, () => readPrimary(cursor)))
  if (!cursor.skip(')')) return cursor.refuse('AND, OR or ")"')
  return cursor.note({ users: cursor.note({ quantifier, ...identified, where }, at) }, at)
}

const readPrimary = (cursor: Cursor): JsonObject => {
  const { at, text, type } = cursor.peek()
  switch (type === 'name' ? text : '') {
    case 'event':
      return readEvent(cursor)
    case 'trait':
    case 'computed': {
      cursor.take()
      const subject = bracketed(cursor, () =>
        text === 'trait' ? readPathText(cursor) : readString(cursor, 'the key of a computed trait'),
      )
      return eachOf(
        cursor,
        readComparison(cursor, () => readOperand(cursor)),
        (comparison) => cursor.like({ [text]: subject, ...comparison }, comparison, at),
      )
    }
    case 'audience':
      return readAudience(cursor)
    case 'identified':
      cursor.take()
      cursor.expect('(')
      cursor.expect(')')
      return cursor.note({ identified: true }, at)
    case 'sequence':
      return readSequence(cursor)
    default:
      return cursor.refuse(
        "event('…'), trait('…'), computed('…'), audience('…'), sequence(…), identified(), NOT or a bracket",
      )
  }
}

const readAudience = (cursor: Cursor): JsonObject => {
  const { at } = cursor.take()
  const key = bracketed(cursor, () => readString(cursor, 'the key of an audience'))
  const isIn = { audience: key, in: true }
  if (!cursor.skip('=') && !cursor.skip('==')) return cursor.note(isIn, at)
  if (cursor.skip('true')) return cursor.note(isIn, at)
  cursor.expect('false')
  return cursor.note({ audience: key, in: false }, at)
}

const readEvent = (cursor: Cursor): JsonObject => {
  const chain = readChain(cursor, 0)
  const { nested } = chain.where
  if (nested !== null && chain.reducer?.[0] === 'count') {
    const sequence = sequenceOf(cursor, chain, nested)
    return readHappened(cursor) ? sequence : cursor.note({ not: sequence }, chain.at)
  }
  return eachOf(
    cursor,
    readComparison(cursor, () => readOperand(cursor)),
    (comparison) => compared(cursor, chain, comparison),
  )
}

const compared = (cursor: Cursor, chain: Chain, comparison: JsonObject): JsonObject => {
  const { op, value } = comparison
  // A count is never missing: not to be that many is the contrary of being it.
  if (chain.reducer?.[0] === 'count' && op === 'neq' && value !== undefined) {
    const equal = measureOf(
      cursor,
      chain,
      cursor.like({ ...comparison, op: 'eq' }, comparison, chain.at),
    )
    return cursor.note({ not: equal }, chain.at)
  }
  return measureOf(cursor, chain, comparison)
}

/** To the right of a sign: trait('…'), computed('…') or another measure. */
const readOperand = (cursor: Cursor): Json => {
  const { at } = cursor.peek()
  if (cursor.skip('trait'))
    return cursor.note({ trait: bracketed(cursor, () => readPathText(cursor)) }, at)
  if (cursor.skip('computed'))
    return `computed:${bracketed(cursor, () => readString(cursor, 'the key of a computed trait'))}`
  if (cursor.peek().text === 'event') return measureOf(cursor, readChain(cursor, null))
  return cursor.refuse(
    "a text in quotes, a number, true, false, trait('…'), computed('…') or event('…')",
  )
}
