// Parsing the JSON form of conditions, and refusing whatever cannot be evaluated.
import type { Json, JsonObject } from '../message.ts'
import { parseTest } from './comparison.ts'
import {
  type Condition,
  conditionLimits,
  type EventSpec,
  type Filter,
  type Measure,
  type Parsed,
  type Problem,
} from './condition.ts'
import { problemsOf, type Reading, type Report, readingOf } from './reading.ts'
import type { CountOperator } from './summary/count.ts'
import { parseDuration, type Window, windowOf } from './window.ts'

/** Never drops anything: an unknown key or kind is a problem, and all problems are reported at once. */
export const parseCondition = (json: unknown, _options?: ParseOptions): Parsed => {
  const report: Report = { problems: [], leaves: 0, leavesMax: conditionLimits.leavesMax }
  const condition = parseNode(readingOf(json as Json, report), 0)
  const problems = problemsOf(report)
  return condition === null || problems.length > 0
    ? { ok: false, problems }
    : { ok: true, condition }
}

export type ParseOptions = {
  /** IANA: of calendar days and of dates without a zone that name none themselves. */
  readonly timezone: string
}

export type ParsedMeasure =
  | { readonly ok: true; readonly measure: Measure }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** A computed trait: events, and what is made of them. */
export const parseMeasure = (json: unknown, _options?: ParseOptions): ParsedMeasure => {
  const report: Report = { problems: [], leaves: 0, leavesMax: conditionLimits.leavesMax }
  const at = readingOf(json as Json, report)
  at.only(['event', 'count'])
  const events = parseEvents(at.in('event'))
  at.in('count').only([])
  const problems = problemsOf(report)
  return events === null || problems.length > 0
    ? { ok: false, problems }
    : { ok: true, measure: { events, reduce: { type: 'count' } } }
}

export type ParsedFilter =
  | { readonly ok: true; readonly filter: Filter }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** A condition on the properties of one call alone, as an event's `where`. */
export const parsePropertyFilter = (json: unknown): ParsedFilter => {
  const report: Report = { problems: [], leaves: 0, leavesMax: conditionLimits.leavesMax }
  const filter = parseFilter(readingOf(json as Json, report), 0)
  const problems = problemsOf(report)
  return filter === null || problems.length > 0 ? { ok: false, problems } : { ok: true, filter }
}

const kinds = ['all', 'any', 'not', 'trait', 'event'] as const

const parseNode = (at: Reading, depth: number): Condition | null => {
  const node = at.object()
  if (node === null) return null
  const kind = kindOf(at, node, kinds)
  switch (kind) {
    case null:
      return null
    case 'all':
    case 'any':
    case 'not':
      return parseJunction({ at, kind, depth, parse: parseNode })
    case 'trait': {
      const test = parseTest(at, 'trait')
      return test === null ? null : { type: 'trait', test }
    }
    case 'event':
      return parseCount(at)
  }
}

/** The one key that says what kind of node this is. */
const kindOf = <K extends string>(at: Reading, node: JsonObject, of: readonly K[]): K | null => {
  const found = of.filter((kind) => Object.hasOwn(node, kind))
  if (found.length === 1) return found[0] as K
  const named = of.map((kind) => `"${kind}"`).join(', ')
  const problem =
    found.length === 0
      ? `expected one of ${named}, found ${describe(Object.keys(node))}`
      : `expected only one of ${named}, found ${describe(found)}`
  return at.refuse(problem)
}

const describe = (keys: readonly string[]): string =>
  keys.length === 0 ? 'an empty object' : keys.map((key) => `"${key}"`).join(' and ')

type Junction<N> = {
  readonly at: Reading
  readonly kind: 'all' | 'any' | 'not'
  readonly depth: number
  readonly parse: (at: Reading, depth: number) => N | null
}

type Joined<N> =
  | { readonly type: 'all' | 'any'; readonly of: readonly N[] }
  | { readonly type: 'not'; readonly of: N }

const parseJunction = <N>({ at, kind, depth, parse }: Junction<N>): Joined<N> | null => {
  at.only([kind])
  if (depth >= conditionLimits.depthMax)
    return at.refuse(`expected at most ${conditionLimits.depthMax} levels of nesting`)
  if (kind === 'not') {
    const of = parse(at.in('not'), depth + 1)
    return of === null ? null : { type: 'not', of }
  }
  const children = at.in(kind).list()
  if (children === null) return null
  if (children.length === 0)
    return at
      .in(kind)
      .refuse(
        `expected at least one condition: an empty "${kind}" would hold for everyone or no one`,
      )
  const of = children.map((child) => parse(child, depth + 1))
  return of.includes(null) ? null : { type: kind, of: of as readonly N[] }
}

const countOperators: readonly CountOperator[] = ['gte', 'gt', 'eq', 'lte', 'lt']

const parseCount = (at: Reading): Condition | null => {
  at.only(['event', 'count'])
  at.leaf()
  const events = parseEvents(at.in('event'))
  const count = at.in('count')
  if (count.object() === null) return null
  count.only(['op', 'value'])
  const op = count.in('op').oneOf(countOperators)
  const value = count.in('value').integer(0, conditionLimits.countMax)
  if (events === null || op === null || value === null) return null
  return { type: 'count', events, threshold: { op, value } }
}

const parseEvents = (at: Reading): EventSpec | null => {
  const node = at.object()
  if (node === null) return null
  at.only(['name', 'where', 'window'])
  const name = at.in('name').text()
  const where = Object.hasOwn(node, 'where') ? parseFilter(at.in('where'), 0) : undefined
  const window = Object.hasOwn(node, 'window') ? parseWindow(at.in('window')) : undefined
  if (name === null || where === null || window === null) return null
  return { name, where: where ?? null, window: window ?? null }
}

const parseFilter = (at: Reading, depth: number): Filter | null => {
  const node = at.object()
  if (node === null) return null
  const kind = kindOf(at, node, ['all', 'any', 'not', 'prop'] as const)
  if (kind === null) return null
  if (kind !== 'prop') return parseJunction({ at, kind, depth, parse: parseFilter })
  const test = parseTest(at, 'prop')
  return test === null ? null : { type: 'prop', test }
}

const parseWindow = (at: Reading): Window | null => {
  if (at.object() === null) return null
  at.only(['last', 'grid'])
  const lastMs = durationAt(at.in('last'))
  const grid = at.in('grid')
  const gridMs = grid.given() ? durationAt(grid) : undefined
  if (lastMs === null || gridMs === null) return null
  const window = windowOf(lastMs, gridMs)
  return typeof window === 'string' ? at.in('last').refuse(window) : window
}

const durationAt = (at: Reading): number | null => {
  const text = at.text()
  if (text === null) return null
  return (
    parseDuration(text) ??
    at.refuse('expected a duration such as "90d", "36h" or "30m" (s, m, h, d or w)')
  )
}
