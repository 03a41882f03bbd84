// `millrace usage`: shows what was metered, or writes it as CSV.
import { csvOf, type UsageReport } from '../domain/usage-report.ts'
import { adminOptions, failing, print, withAdmin, workspaceOf } from './client.ts'
import { type Call, type Command, flag, text } from './command.ts'

export const command: Command = {
  name: 'usage',
  summary: 'show calls and tracked users of a month, or of days',
  usage: [
    '[--month 2026-11] [--csv] [--workspace NAME]',
    '--from 2026-11-01 [--until 2026-12-01] [--csv] [--workspace NAME]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    month: { type: 'string' },
    from: { type: 'string' },
    until: { type: 'string' },
    csv: { type: 'boolean' },
  },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const span = spanOf(call)
      const workspaceId = await workspaceOf(call, ask)
      const query = new URLSearchParams({
        ...span,
        ...(workspaceId === null ? {} : { workspaceId: String(workspaceId) }),
      })
      const report = await ask<UsageReport>({ path: `/admin/v1/usage?${query}` })
      // The terminal ends each line itself.
      if (flag(call, 'csv')) for (const line of linesOf(csvOf(report))) call.terminal.out(line)
      else show(call, report)
      return 0
    }),
}

const linesOf = (csv: string): readonly string[] => csv.trimEnd().split('\r\n')

const spanOf = (call: Call): Readonly<Record<string, string>> => {
  const month = text(call, 'month')
  const [from, until] = [text(call, 'from'), text(call, 'until')]
  if (month === null)
    return { ...(from === null ? {} : { from }), ...(until === null ? {} : { until }) }
  if (from !== null || until !== null)
    throw failing(['give --month, or --from and --until, not both'], 2)
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) throw failing(['say the month as 2026-11'], 2)
  const next = new Date(`${month}-01T00:00Z`)
  next.setUTCMonth(next.getUTCMonth() + 1)
  return { from: `${month}-01`, until: next.toISOString().slice(0, 10) }
}

const show = (call: Call, report: UsageReport): void => {
  print(call, report, [
    ['MONTH', 'CALLS', 'TRACKED USERS', 'USER IDS', 'ANONYMOUS IDS'],
    ...report.months.map(
      ({ month, calls, trackedUsers, userIds, anonymousIds }) =>
        [month, calls, trackedUsers, userIds, anonymousIds].map(String) as [string, ...string[]],
    ),
  ])
  if (flag(call, 'json') || report.days.length === 0) return
  call.terminal.out('')
  print(call, report, [
    ['DAY', 'SOURCE', 'TYPE', 'CALLS'],
    ...report.days.map(
      ({ day, sourceId, source, type, calls }) =>
        [day, source ?? `${sourceId} (deleted)`, type, String(calls)] as const,
    ),
  ])
}
