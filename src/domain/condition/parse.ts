// Parsing the JSON form of conditions, and refusing whatever cannot be evaluated.
import type { Json } from '../message.ts'
import { isTimezone } from '../zone.ts'
import { operators, parseTest } from './comparison.ts'
import {
  type Condition,
  conditionLimits,
  type Filter,
  type Measure,
  type Parsed,
  type Problem,
} from './condition.ts'
import { kindOf, parseFilter, parseJunction } from './parse-events.ts'
import { parseCompare, parseMeasureAt, parseMeasured, refAt } from './parse-measure.ts'
import { parseSequence } from './parse-sequence.ts'
import { problemsOf, type Reading, type Report, readingOf } from './reading.ts'

export type ParseOptions = {
  /** IANA: of calendar days and of dates without a zone that name none themselves. */
  readonly timezone: string
}

const utc: ParseOptions = { timezone: 'UTC' }

/** Never drops anything: an unknown key or kind is a problem, and all problems are reported at once. */
export const parseCondition = (json: unknown, options = utc): Parsed => {
  const { found, problems } = reading(json, options, (at) => parseNode(at, 0))
  return found === null ? { ok: false, problems } : { ok: true, condition: found }
}

export type ParsedMeasure =
  | { readonly ok: true; readonly measure: Measure }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** A computed trait: events, and what is made of them. */
export const parseMeasure = (json: unknown, options = utc): ParsedMeasure => {
  const { found, problems } = reading(json, options, parseMeasureAt)
  return found === null ? { ok: false, problems } : { ok: true, measure: found }
}

export type ParsedFilter =
  | { readonly ok: true; readonly filter: Filter }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** A condition on the properties of one call alone, as an event's `where`. */
export const parsePropertyFilter = (json: unknown, options = utc): ParsedFilter => {
  const { found, problems } = reading(json, options, (at) => parseFilter(at, 0))
  return found === null ? { ok: false, problems } : { ok: true, filter: found }
}

/** Parses the whole of it, and says all that is wrong with it. */
export const reading = <T>(
  json: unknown,
  { timezone }: ParseOptions,
  parse: (at: Reading) => T | null,
): { readonly found: T | null; readonly problems: readonly Problem[] } => {
  if (!isTimezone(timezone))
    return { found: null, problems: [{ path: '', message: 'expected an IANA time zone' }] }
  const { leavesMax } = conditionLimits
  const report: Report = { problems: [], leaves: 0, leavesMax, timezone }
  const found = parse(readingOf(json as Json, report))
  const problems = problemsOf(report)
  return { found: problems.length > 0 ? null : found, problems }
}

const kinds = [
  ...(['all', 'any', 'not', 'trait', 'event'] as const),
  ...(['compare', 'sequence', 'identified', 'audience', 'computed', 'users'] as const),
]

export const parseNode = (at: Reading, depth: number): Condition | null => {
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
      const test = parseTest(at, 'trait', { operators, ref: refAt })
      return test === null ? null : { type: 'trait', test }
    }
    case 'event':
      return parseMeasured(at)
    case 'compare':
      return parseCompare(at)
    case 'sequence':
      return parseSequence(at)
    case 'identified':
      at.only(['identified'])
      return node['identified'] === true
        ? { type: 'identified' }
        : at.in('identified').refuse('expected true; for the contrary use "not"')
    case 'audience':
    case 'computed':
      return at.in(kind).refuse('expected no reference here: it must be written out first')
    case 'users':
      return at
        .in(kind)
        .refuse('expected "users" only as the whole condition of an audience with scope "account"')
  }
}
