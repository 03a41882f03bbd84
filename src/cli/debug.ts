// `millrace debug`: shows in a terminal what happens to the calls of one source, as it happens, masked.
import type { Entry } from '../debugger/entry.ts'
import {
  type Admin,
  type Ask,
  adminOptions,
  failing,
  narrowed,
  theOne,
  withAdmin,
  workspaceOf,
} from './client.ts'
import { type Call, type Command, flag, text } from './command.ts'
import { followEvents, type StreamEvent } from './event-stream.ts'

export const command: Command = {
  name: 'debug',
  summary: 'show what happens to the calls of a source, as it happens, masked',
  usage: [
    'SOURCE [--workspace NAME] [--step STEP] [--type TYPE] [--event EVENT] [--calls] [--limit N] [--json]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    step: { type: 'string' },
    type: { type: 'string' },
    event: { type: 'string' },
    calls: { type: 'boolean' },
    limit: { type: 'string' },
  },
  positionals: { min: 1, max: 1 },
  run: (call) => withAdmin(call, (ask, admin) => tail(call, ask, admin)),
}

const tail = async (call: Call, ask: Ask, admin: Admin): Promise<number> => {
  const limit = limitOf(call)
  const path = await pathOf(call, ask)
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  process.once('SIGINT', leave)
  process.once('SIGTERM', leave)
  const lost = (reason: string) =>
    call.terminal.err(`millrace debug: the connection is lost (${reason}): trying again`)
  try {
    if (!flag(call, 'json')) call.terminal.out(rowOf(headings))
    let shown = 0
    for await (const event of followEvents(admin, { path, signal: leaving.signal, lost })) {
      tell(call, event)
      shown += event.event === 'call' ? 1 : 0
      if (shown === limit) break
    }
    return 0
  } finally {
    process.off('SIGINT', leave)
    process.off('SIGTERM', leave)
    leaving.abort()
  }
}

const limitOf = (call: Call): number => {
  const given = text(call, 'limit')
  if (given === null) return Number.POSITIVE_INFINITY
  if (!/^[1-9]\d{0,8}$/.test(given)) throw failing(['--limit takes a number from 1'], 2)
  return Number(given)
}

type Sources = { readonly sources: readonly { readonly id: number; readonly name: string }[] }

const pathOf = async (call: Call, ask: Ask): Promise<string> => {
  const [name = ''] = call.positionals
  const answer = await ask<Sources>({
    path: narrowed('/admin/v1/sources', await workspaceOf(call, ask)),
  })
  const { id } = theOne(answer.sources, 'source', name)
  const query = new URLSearchParams()
  for (const option of ['step', 'type', 'event']) {
    const value = text(call, option)
    if (value !== null) query.set(option, value)
  }
  return `/admin/v1/sources/${id}/debugger?${query}`
}

const tell = (call: Call, { event, data }: StreamEvent): void => {
  const { terminal } = call
  if (flag(call, 'json')) {
    terminal.out(data)
    return
  }
  if (event === 'skipped') {
    const { skipped } = JSON.parse(data) as { readonly skipped: number }
    terminal.out(`… ${skipped} skipped`)
    return
  }
  const { at, step, reason, type, event: name, messageId, ...rest } = JSON.parse(data) as Entry
  terminal.out(rowOf([at.slice(11, 23), step, type, name ?? '-', reason ?? '-', messageId ?? '-']))
  if (flag(call, 'calls') && rest.call !== null)
    terminal.out(`    ${JSON.stringify(rest.call)}${rest.isCut ? ' … cut' : ''}`)
}

type Row = readonly [string, string, string, string, string, string]

const headings: Row = ['TIME', 'STEP', 'TYPE', 'EVENT', 'REASON', 'MESSAGE ID']
const widths = [12, 9, 8, 28, 24, 0]

/** Of fixed widths: what comes next is not known yet. */
const rowOf = (row: Row): string =>
  row
    .map((cell, at) => cell.padEnd(widths[at] ?? 0))
    .join('  ')
    .trimEnd()
