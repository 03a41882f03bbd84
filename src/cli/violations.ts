// `millrace violations`: how calls of a source broke its tracking plan.
import { adminOptions, failing, narrowed, print, theOne, withAdmin, workspaceOf } from './client.ts'
import { type Command, text } from './command.ts'

type Sources = { readonly sources: readonly { readonly id: number; readonly name: string }[] }

type Violations = {
  readonly since: string
  readonly violations: readonly {
    readonly day: string
    readonly event: string
    readonly path: string
    readonly kind: string
    readonly calls: number
    readonly firstAt: string
    readonly lastAt: string
  }[]
  readonly more: boolean
}

const limit = 1_000

export const command: Command = {
  name: 'violations',
  summary: "show how a source's calls broke its tracking plan",
  usage: ['SOURCE [--days N] [--workspace NAME]'],
  options: { ...adminOptions, workspace: { type: 'string' }, days: { type: 'string' } },
  positionals: { min: 1, max: 1 },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const days = text(call, 'days') ?? '7'
      if (!/^\d{1,2}$/.test(days) || Number(days) < 1 || Number(days) > 90)
        throw failing(['--days is a number from 1 to 90'], 2)
      const path = narrowed('/admin/v1/sources', await workspaceOf(call, ask))
      const { sources } = await ask<Sources>({ path })
      const { id } = theOne(sources, 'source', call.positionals[0] as string)
      const answer = await ask<Violations>({
        path: `/admin/v1/sources/${id}/violations?days=${Number(days)}&limit=${limit}`,
      })
      print(call, answer, [
        ['DAY', 'EVENT', 'PATH', 'KIND', 'CALLS', 'FIRST', 'LAST'],
        ...answer.violations.map(
          ({ day, event, path, kind, calls, firstAt, lastAt }) =>
            [day, printable(event), printable(path), kind, String(calls), firstAt, lastAt] as const,
        ),
      ])
      if (answer.more) call.terminal.err(`there are more than ${limit}: ask for fewer days`)
      return 0
    }),
}

/** Names came from whoever holds the write key: a terminal must not obey them. */
const printable = (name: string): string => name.replaceAll(/\p{C}/gu, '\ufffd')
