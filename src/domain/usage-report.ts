// Usage as it is shown: by day and by month, and the same as CSV. Pure.
import type { CallType } from './message.ts'
import type { Tracked } from './usage.ts'

export type CallsMetered = {
  readonly sourceId: number
  /** `null` when the source is deleted. */
  readonly source: string | null
  readonly type: CallType
  readonly calls: number
}

export type UsageReport = {
  readonly workspaceId: number
  /** The first day, and the one after the last. */
  readonly from: string
  readonly until: string
  readonly days: readonly (CallsMetered & { readonly day: string })[]
  /** Whole months, also where the days are only part of one. */
  readonly months: readonly (Tracked & {
    readonly month: string
    readonly calls: number
    /** User ids and anonymous ids together. */
    readonly trackedUsers: number
    readonly bySource: readonly CallsMetered[]
  })[]
}

/** One row a figure, so that a spreadsheet can pivot it. */
export const csvOf = ({ days, months }: UsageReport): string =>
  [
    ['period', 'figure', 'source_id', 'source', 'type', 'amount'],
    ...days.map(({ day, ...metered }) => callsRow(day, metered)),
    ...months.flatMap(({ month, userIds, anonymousIds, trackedUsers, bySource }) => [
      ...bySource.map((metered) => callsRow(month, metered)),
      [month, 'tracked_user_ids', '', '', '', userIds],
      [month, 'tracked_anonymous_ids', '', '', '', anonymousIds],
      [month, 'tracked_users', '', '', '', trackedUsers],
    ]),
  ]
    .map((row) => `${row.map(cell).join(',')}\r\n`)
    .join('')

const callsRow = (period: string, { sourceId, source, type, calls }: CallsMetered) => [
  period,
  'calls',
  sourceId,
  source ?? '',
  type,
  calls,
]

/** RFC 4180; a text that a spreadsheet would take for a formula is shown as text. */
const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
