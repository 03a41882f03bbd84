// Reading event('…') and the chain behind it: filters, windows and what is made of the events.
import type { Json, JsonObject } from '../../message.ts'
import type { Cursor } from './cursor.ts'
import { type Nested, readWhere, type Where } from './filter.ts'
import { bracketed, readDuration, readNumber, readPathText, readString } from './value.ts'

export type Chain = {
  readonly name: string
  readonly where: Where
  /** `null` for all time. */
  readonly window: JsonObject | null
  /** within(parent: …) */
  readonly withinParent: string | null
  /** What is made of them, and how: `null` where the chain ends without. */
  readonly reducer: readonly [string, JsonObject] | null
  readonly at: number
}

type Draft = {
  readonly wheres: Where[]
  readonly window: Record<string, Json>
  readonly places: Record<string, number>
  withinParent: string | null
}

const pathReducers = ['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct', 'unique', 'mode']
export const reducerNames = ['count', 'distinct_days', ...pathReducers]
const filterNames = ['where', 'within', 'between', 'after', 'before', 'calendar_days', 'timezone']

/** The names steps get by how deep they stand: one event within another is the step after it. */
const stepNames = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']

/** `depth`: how many events it stands within; `null` where none may stand within it. */
export const readChain = (cursor: Cursor, depth: number | null): Chain => {
  const { at } = cursor.expect('event')
  const nameAt = cursor.peek().at + 1
  const name = bracketed(cursor, () => readString(cursor, 'the name of an event'))
  const draft: Draft = { wheres: [], window: {}, places: {}, withinParent: null }
  const reducer = readLinks(cursor, draft, depth)
  const window =
    Object.keys(draft.window).length === 0 ? null : cursor.note(draft.window, nameAt, draft.places)
  return {
    name,
    where: joined(cursor, draft),
    window,
    ...{ at, reducer },
    withinParent: draft.withinParent,
  }
}

const readLinks = (cursor: Cursor, draft: Draft, depth: number | null): Chain['reducer'] => {
  while (cursor.peek().text === '.' && cursor.peek().type === 'sign') {
    cursor.take()
    const link = cursor.peek()
    const name = link.text.toLowerCase()
    if (reducerNames.includes(name)) return readReducer(cursor)
    if (!filterNames.includes(name))
      return cursor.refuse(`one of ${[...filterNames, ...reducerNames].join(', ')} after the dot`)
    cursor.take()
    bracketed(cursor, () => readLink(cursor, draft, { name, at: link.at, depth }))
  }
  return null
}

/** What of a window goes with what. */
const besides: Readonly<Record<string, readonly string[]>> = {
  last: ['grid'],
  between_ago: ['grid'],
  grid: ['last', 'between_ago'],
  calendar_days: ['timezone'],
  after: ['before', 'timezone'],
  before: ['after', 'timezone'],
  timezone: ['calendar_days', 'after', 'before'],
}
const linkOf: Readonly<Record<string, string>> = { last: 'within', between_ago: 'between' }

type Link = { readonly name: string; readonly at: number; readonly depth: number | null }

const readLink = (cursor: Cursor, draft: Draft, { name, at, depth }: Link): void => {
  const set = (key: string, value: Json) => {
    if (Object.hasOwn(draft.window, key)) cursor.refuse(`only one ${name}(…) of an event`, at)
    const other = Object.keys(draft.window).find((held) => !besides[key]?.includes(held))
    if (other !== undefined) cursor.refuse(`no ${name}(…) beside ${linkOf[other] ?? other}(…)`, at)
    draft.window[key] = value
    draft.places[key] = at
  }
  switch (name) {
    case 'where':
      draft.wheres.push(readNestable(cursor, depth))
      break
    case 'within':
      if (cursor.skip('parent')) {
        cursor.expect(':')
        if (depth === null || depth === 0) cursor.refuse('an event around this one', at)
        draft.withinParent = readDuration(cursor)
        break
      }
      set('last', readDuration(cursor))
      readGrid(cursor, set)
      break
    case 'between': {
      const from = readDuration(cursor)
      cursor.expect(',')
      set('between_ago', [from, readDuration(cursor)])
      readGrid(cursor, set)
      break
    }
    case 'calendar_days':
      set(name, readNumber(cursor))
      break
    default:
      set(name, readString(cursor, name === 'timezone' ? 'a time zone' : 'a date'))
  }
}

const readGrid = (cursor: Cursor, set: (key: string, value: Json) => void): void => {
  if (!cursor.skip(',')) return
  cursor.expect('grid')
  cursor.expect(':')
  set('grid', readDuration(cursor))
}

const readNestable = (cursor: Cursor, depth: number | null): Where =>
  readWhere(cursor, {
    parent: depth === null || depth === 0 ? null : (stepNames[depth - 1] as string),
    event: depth === null ? null : () => readNested(cursor, depth + 1),
  })

/** event(…) … .count() >= 1, or = 0, within the where of another. */
const readNested = (cursor: Cursor, depth: number): Nested => {
  if (depth >= stepNames.length) return cursor.refuse('fewer events within each other')
  const chain = cursor.nested(() => readChain(cursor, depth))
  const { at } = chain
  if (chain.window !== null)
    return cursor.refuse('within(parent: …) as the only time of an event within an event', at)
  if (chain.reducer?.[0] !== 'count')
    return cursor.refuse('.count() >= 1 or .count() = 0 of an event within an event', at)
  const happened = readHappened(cursor)
  const step = stepOf(cursor, chain, { name: stepNames[depth] as string })
  return { steps: [step, ...(chain.where.nested?.steps ?? [])], happened, at }
}

const happenings: Readonly<Record<string, boolean>> = {
  ...{ '>=1': true, '>0': true, '!=0': true, '=0': false, '==0': false, '<1': false, '<=0': false },
}

/** Whether a count says that there is one, or that there is none. */
export const readHappened = (cursor: Cursor): boolean => {
  const { at } = cursor.peek()
  const sign = cursor.take().text
  const happened = happenings[`${sign}${cursor.peek().text}`]
  if (happened === undefined) return cursor.refuse('>= 1 or = 0: steps happen or do not', at)
  cursor.take()
  return happened
}

type StepParts = { readonly name: string | null; readonly within?: string | null }

export const stepOf = (
  cursor: Cursor,
  { name, where, withinParent, at }: Chain,
  { name: label, within = withinParent }: StepParts,
): JsonObject => {
  const event = cursor.note({ name, ...(where.where === null ? {} : { where: where.where }) }, at)
  const parts = {
    event,
    ...(label === null ? {} : { as: label }),
    ...(within === null ? {} : { within }),
  }
  return cursor.note(parts, at)
}

/** The sequence that a chain with an event within it says. */
export const sequenceOf = (cursor: Cursor, chain: Chain, nested: Nested): JsonObject => {
  const first = stepOf(cursor, chain, { name: stepNames[0] as string })
  const sequence = {
    ...(chain.window === null ? {} : { window: chain.window }),
    steps: [first, ...nested.steps],
  }
  return cursor.note({ sequence: cursor.note(sequence, chain.at) }, chain.at)
}

/** {"event", <reducer>} with what it is compared with, if it is. */
export const measureOf = (
  cursor: Cursor,
  chain: Chain,
  comparison: JsonObject = {},
): JsonObject => {
  const { name, where, window, reducer, at } = chain
  if (reducer === null)
    return cursor.refuse(`one of ${reducerNames.join(', ')} behind the event`, cursor.peek().at)
  if (where.nested !== null)
    return cursor.refuse('.count() >= 1 or .count() = 0 of an event with another in it', at)
  const event = cursor.note(
    {
      name,
      ...(where.where === null ? {} : { where: where.where }),
      ...(window === null ? {} : { window }),
    },
    at,
  )
  const [kind, made] = reducer
  const merged = cursor.like({ ...made, ...comparison }, comparison, cursor.placeOf(made, ''))
  return cursor.note({ event, [kind]: merged }, at)
}

const joined = (cursor: Cursor, { wheres }: Draft): Where => {
  const filters = wheres.flatMap(({ where }) => (where === null ? [] : [where]))
  const nested = wheres.flatMap((where) => (where.nested === null ? [] : [where.nested]))
  if (nested.length > 1) return cursor.refuse('one event within an event', (nested[1] as Nested).at)
  const [only] = filters
  const where = filters.length > 1 ? { all: filters } : (only ?? null)
  return { where, nested: nested[0] ?? null }
}

const readReducer = (cursor: Cursor): readonly [string, JsonObject] => {
  const { at, text } = cursor.take()
  const kind = text.toLowerCase()
  const made: Record<string, Json> = {}
  bracketed(cursor, () => {
    if (kind === 'distinct_days') {
      if (cursor.peek().type === 'string') made['timezone'] = cursor.take().text
    } else if (pathReducers.includes(kind)) {
      cursor.expect('property')
      made['prop'] = bracketed(cursor, () => readPathText(cursor))
      if (kind === 'mode' && cursor.skip(',')) made['min_frequency'] = readNumber(cursor)
    }
  })
  cursor.note(made, at)
  return [kind, made]
}
