// Instants and places in a list, as they come in the queries of the admin API.
import type { Problem } from '../control/problem.ts'

const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/** `null` when it was not given; a day alone begins at midnight UTC. */
export const readInstant = (text: string | undefined, field: string): Date | null | Problem => {
  if (text === undefined) return null
  const ms = iso.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isFinite(ms)) return new Date(ms)
  const message = `${field} must be a time in ISO 8601 like 2026-03-01T12:00:00Z`
  return { code: 'field_invalid', path: `/${field}`, message }
}

export const isProblem = (value: Date | null | Problem): value is Problem =>
  value !== null && 'code' in value

export type Span = { readonly since: Date | null; readonly until: Date | null }

export const readSpan = (query: {
  readonly since?: string
  readonly until?: string
}): Span | { readonly problems: readonly Problem[] } => {
  const since = readInstant(query.since, 'since')
  const until = readInstant(query.until, 'until')
  const problems = [since, until].filter(isProblem)
  if (isProblem(since) || isProblem(until)) return { problems }
  return { since, until }
}

/** The last row of a page, newest first. */
export type Cursor = { readonly at: Date; readonly id: bigint }

export const writeCursor = ({ at, id }: Cursor): string => `${at.toISOString()}_${id}`

/** `null` when it was not given. */
export const readCursor = (text: string | undefined): Cursor | null | Problem => {
  if (text === undefined) return null
  const [, at = '', id = ''] = /^([^_]{20,32})_(\d{1,18})$/.exec(text) ?? []
  const ms = iso.test(at) ? Date.parse(at) : Number.NaN
  if (Number.isFinite(ms)) return { at: new Date(ms), id: BigInt(id) }
  const message = 'after must be what the page before gave as next'
  return { code: 'field_invalid', path: '/after', message }
}
