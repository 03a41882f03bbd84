// Parsing windows of events: {"last"}, {"between_ago"}, {"after", "before"} and {"calendar_days"}.
import { isTimezone } from '../zone.ts'
import { readDate } from './date.ts'
import type { Reading } from './reading.ts'
import { parseDuration, type Window, windowAgo, windowBucketsMax, windowOf } from './window.ts'

export const parseWindow = (at: Reading): Window | null => {
  if (at.object() === null) return null
  const kinds = ['last', 'between_ago', 'calendar_days'] as const
  const found = kinds.filter((kind) => at.in(kind).given())
  if (found.length > 1)
    return at.refuse(`expected only one of ${kinds.map((kind) => `"${kind}"`).join(', ')}`)
  const kind = found[0] ?? 'dates'
  switch (kind) {
    case 'last':
      return lastWindow(at)
    case 'between_ago':
      return agoWindow(at)
    case 'calendar_days':
      return calendarWindow(at)
    case 'dates':
      return fixedWindow(at)
  }
}

const lastWindow = (at: Reading): Window | null => {
  at.only(['last', 'grid'])
  const lastMs = durationAt(at.in('last'))
  const gridMs = gridAt(at)
  if (lastMs === null || gridMs === null) return null
  const window = windowOf(lastMs, gridMs)
  return typeof window === 'string' ? at.in('last').refuse(window) : window
}

const agoWindow = (at: Reading): Window | null => {
  at.only(['between_ago', 'grid'])
  const ages = at.in('between_ago')
  const list = ages.list()
  const gridMs = gridAt(at)
  const [from, until] = list ?? []
  if (list === null) return null
  if (from === undefined || until === undefined || list.length !== 2)
    return ages.refuse('expected two ages, the younger first, such as ["30d", "90d"]')
  const [fromMs, untilMs] = [durationAt(from), durationAt(until)]
  if (fromMs === null || untilMs === null || gridMs === null) return null
  const window = windowAgo(fromMs, untilMs, gridMs)
  return typeof window === 'string' ? ages.refuse(window) : window
}

const calendarWindow = (at: Reading): Window | null => {
  at.only(['calendar_days', 'timezone'])
  const days = at.in('calendar_days').integer(1, windowBucketsMax)
  const timezone = timezoneAt(at.in('timezone'))
  return days === null || timezone === null ? null : { type: 'calendar', days, timezone }
}

const fixedWindow = (at: Reading): Window | null => {
  at.only(['last', 'between_ago', 'calendar_days', 'after', 'before', 'timezone', 'grid'])
  const timezone = timezoneAt(at.in('timezone'))
  const [after, before] = [at.in('after'), at.in('before')].map((bound) =>
    bound.given()
      ? (readDate(bound.value, timezone ?? 'UTC') ??
        bound.refuse('expected a date such as "2026-01-31" or "2026-01-31T09:00:00Z"'))
      : undefined,
  )
  if (after === undefined && before === undefined)
    return at.refuse('expected "last", "between_ago", "calendar_days", "after" or "before"')
  if (at.in('grid').given()) return at.refuse('expected no "grid" between dates')
  if (after === null || before === null || timezone === null) return null
  if (after !== undefined && before !== undefined && after >= before)
    return at.in('before').refuse('expected "before" to be later than "after"')
  return { type: 'fixed', after: after ?? null, before: before ?? null }
}

const gridAt = (at: Reading): number | null | undefined => {
  const grid = at.in('grid')
  return grid.given() ? durationAt(grid) : undefined
}

export const durationAt = (at: Reading): number | null => {
  const text = at.text()
  if (text === null) return null
  return (
    parseDuration(text) ??
    at.refuse('expected a duration such as "90d", "36h" or "30m" (s, m, h, d or w)')
  )
}

/** The one that is named, else that of the whole definition. */
export const timezoneAt = (at: Reading): string | null => {
  if (!at.given()) return at.timezone
  return typeof at.value === 'string' && isTimezone(at.value)
    ? at.value
    : at.refuse('expected an IANA time zone such as "Europe/Dublin"')
}
