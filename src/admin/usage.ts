// Routes that show what was metered: calls by source, type and day, and tracked users by month.
import Type from 'typebox'
import type { Problem } from '../control/problem.ts'
import { readState, type State } from '../control/state.ts'
import { callTypes } from '../domain/message.ts'
import { dayMs, dayName, dayOf, monthName, monthOf } from '../domain/usage.ts'
import { type CallsMetered, csvOf, type UsageReport } from '../domain/usage-report.ts'
import { type Answer, ok, refusal } from './answer.ts'
import type { AdminDeps } from './deps.ts'
import { type Route, route } from './route.ts'
import { type CallsOfDay, loadCalls, loadTracked } from './usage-store.ts'
import { id, named, nullable } from './views.ts'
import { workspaceOf } from './workspaces.ts'

const amount = Type.Integer({ minimum: 0 })
const dayPattern = '^\\d{4}-\\d{2}-\\d{2}$'
const day = Type.String({ pattern: dayPattern })

const metered = {
  sourceId: id,
  source: nullable(Type.String({ description: 'null when it is deleted.' })),
  type: Type.Union(callTypes.map((type) => Type.Literal(type))),
  calls: amount,
}

const UsageView = named('Usage', {
  workspaceId: id,
  from: day,
  until: day,
  days: Type.Array(Type.Object({ day, ...metered })),
  months: Type.Array(
    Type.Object({
      month: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
      calls: amount,
      trackedUsers: amount,
      userIds: amount,
      anonymousIds: amount,
      bySource: Type.Array(Type.Object(metered)),
    }),
  ),
})

const usageQuery = Type.Object(
  {
    workspaceId: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
    from: Type.Optional(
      Type.String({
        pattern: dayPattern,
        description: 'The first day, UTC; the first of this month when absent.',
      }),
    ),
    until: Type.Optional(
      Type.String({
        pattern: dayPattern,
        description: 'The day after the last, UTC; tomorrow when absent.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const usageRoutes = (deps: AdminDeps): readonly Route[] => [
  route({
    method: 'GET',
    path: '/admin/v1/usage',
    operation: 'getUsage',
    summary: 'Calls by source, type and day, and tracked users by month',
    access: 'viewer',
    query: usageQuery,
    answers: { 200: { description: 'What was metered.', schema: UsageView } },
    handle: ({ query }) => answerUsage(deps, query, ok),
  }),
  route({
    method: 'GET',
    path: '/admin/v1/usage.csv',
    operation: 'exportUsage',
    summary: 'The same as CSV, one row a figure',
    access: 'viewer',
    query: usageQuery,
    answers: { 200: { description: 'The rows.', contentType: 'text/csv' } },
    handle: ({ query }) =>
      answerUsage(deps, query, (report) => ({
        status: 200,
        body: csvOf(report),
        contentType: 'text/csv; charset=utf-8',
      })),
  }),
]

type Query = { readonly workspaceId?: number; readonly from?: string; readonly until?: string }

const answerUsage = async (
  deps: AdminDeps,
  query: Query,
  show: (report: UsageReport) => Answer,
): Promise<Answer> => {
  const state = await readState(deps.pool)
  const workspace = workspaceOf(state, query)
  if ('problems' in workspace) return refusal(workspace.problems)
  const span = spanOf(query, deps.clock().getTime())
  if (Array.isArray(span)) return refusal(span)
  return show(await reportOf(deps, state, { workspaceId: workspace.id, ...(span as Span) }))
}

/** Epoch ms of the first day, and of the day after the last. */
type Span = { readonly from: number; readonly until: number }

const daysMax = 400

const spanOf = (query: Query, now: number): Span | readonly Problem[] => {
  const { from = `${monthName(monthOf(now))}-01`, until = dayName(dayOf(now) + 1) } = query
  const span = { from: Date.parse(`${from}T00:00Z`), until: Date.parse(`${until}T00:00Z`) }
  const problems = [
    ...(isDay(from, span.from) ? [] : [invalid('/from', `${from} is no day`)]),
    ...(isDay(until, span.until) ? [] : [invalid('/until', `${until} is no day`)]),
  ]
  if (problems.length > 0) return problems
  if (span.until <= span.from) return [invalid('/until', 'until must lie after from')]
  if (span.until - span.from > daysMax * dayMs)
    return [invalid('/from', `from lies more than ${daysMax} days before until`)]
  return span
}

/** `2026-02-30` parses, as the second of March. */
const isDay = (text: string, at: number): boolean =>
  Number.isFinite(at) && dayName(dayOf(at)) === text

const invalid = (path: string, message: string): Problem => ({
  code: 'field_invalid',
  path,
  message,
})

const reportOf = async (
  deps: AdminDeps,
  { sources }: State,
  { workspaceId, from, until }: Span & { readonly workspaceId: number },
): Promise<UsageReport> => {
  const first = monthOf(from)
  const last = monthOf(until - dayMs)
  const whole = { from: `${monthName(first)}-01`, until: `${monthName(last + 1)}-01` }
  const calls = await loadCalls(deps.pool, { workspaceId, ...whole })
  const tracked = await loadTracked(deps.pool, { workspaceId, from: first, until: last })
  const nameOf = (sourceId: number) => sources.get(sourceId)?.name ?? null
  const [fromDay, untilDay] = [dayName(dayOf(from)), dayName(dayOf(until))]
  return {
    workspaceId,
    from: fromDay,
    until: untilDay,
    days: calls
      .filter((each) => each.day >= fromDay && each.day < untilDay)
      .map(({ day: of, ...each }) => ({ day: of, ...withName(each, nameOf) })),
    months: Array.from({ length: last - first + 1 }, (_, at) => {
      const month = monthName(first + at)
      const own = calls.filter((each) => each.day.startsWith(month))
      const { userIds, anonymousIds } = tracked.get(first + at) ?? { userIds: 0, anonymousIds: 0 }
      return {
        month,
        calls: own.reduce((sum, each) => sum + each.calls, 0),
        trackedUsers: userIds + anonymousIds,
        userIds,
        anonymousIds,
        bySource: sumOf(own).map((each) => withName(each, nameOf)),
      }
    }),
  }
}

type Summed = Omit<CallsOfDay, 'day'>

const withName = (
  { sourceId, type, calls }: Summed,
  nameOf: (sourceId: number) => string | null,
): CallsMetered => ({ sourceId, source: nameOf(sourceId), type, calls })

const sumOf = (days: readonly CallsOfDay[]): readonly Summed[] =>
  [...Map.groupBy(days, ({ sourceId, type }) => `${sourceId} ${type}`).values()]
    .map((all) => ({
      sourceId: (all[0] as CallsOfDay).sourceId,
      type: (all[0] as CallsOfDay).type,
      calls: all.reduce((sum, { calls }) => sum + calls, 0),
    }))
    .sort((left, right) => left.sourceId - right.sourceId || (left.type < right.type ? -1 : 1))
