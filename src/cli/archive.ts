// `millrace archive`: how the archive stands, whether its files are what was written, and a new index from them alone.
import { checkArchive } from '../archive/inspect.ts'
import { reindexArchive } from '../archive/reindex.ts'
import { openStore, type Store } from '../archive/store.ts'
import { credentialsOf, placeOf } from '../archiving.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Ask, adminOptions, failing, print, withAdmin } from './client.ts'
import { type Call, type Command, flag } from './command.ts'

export const command: Command = {
  name: 'archive',
  summary: 'show the archive, check its segments, or make its index anew',
  usage: ['status', 'check', 'reindex [--without-damaged]'],
  options: { ...adminOptions, 'without-damaged': { type: 'boolean' } },
  positionals: { min: 1, max: 1 },
  run: (call) => {
    switch (call.positionals[0]) {
      case 'status':
        return withAdmin(call, (ask) => status(call, ask))
      case 'check':
        return check(call)
      case 'reindex':
        return reindex(call)
      default:
        call.terminal.err('say "status", "check" or "reindex"')
        return Promise.resolve(2)
    }
  },
}

type Partition = {
  readonly topic: string
  readonly partition: number
  readonly segments: number
  readonly entries: number
  readonly bytes: number
  readonly receivedFrom: string | null
  readonly receivedTo: string | null
  readonly lag: number | null
  readonly headroom: number | null
  readonly trouble: string | null
}

const status = async (call: Call, ask: Ask): Promise<number> => {
  const archive = await ask<{ partitions: readonly Partition[] }>({ path: '/admin/v1/archive' })
  if (archive.partitions.length === 0)
    throw failing(['nothing is archived: set MILLRACE_ARCHIVE where Millrace runs'])
  print(call, archive, [
    ['PARTITION', 'SEGMENTS', 'ENTRIES', 'BYTES', 'FROM', 'TO', 'LAG', 'HEADROOM', 'TROUBLE'],
    ...archive.partitions.map(
      (each) =>
        [
          `${each.topic}/${each.partition}`,
          String(each.segments),
          String(each.entries),
          String(each.bytes),
          each.receivedFrom ?? '-',
          each.receivedTo ?? '-',
          String(each.lag ?? '-'),
          String(each.headroom ?? '-'),
          each.trouble ?? '-',
        ] as const,
    ),
  ])
  return archive.partitions.some(({ trouble }) => trouble !== null) ? 1 : 0
}

const storeOf = ({ config, terminal }: Call): Store | null => {
  const place = placeOf(config)
  if (place !== null) return openStore({ place, credentials: credentialsOf(config) })
  terminal.err('set MILLRACE_ARCHIVE, and the credentials of a bucket, as where Millrace runs')
  return null
}

const check = async (call: Call): Promise<number> => {
  const { out, err } = call.terminal
  const store = storeOf(call)
  if (store === null) return 2
  const checked = await checkArchive(await call.database(), store)
  if (flag(call, 'json')) out(JSON.stringify(checked, null, 2))
  else {
    for (const { path, problem } of checked.findings) err(`${path}: ${problem}`)
    const { segments, entries, bytes, findings } = checked
    out(`${segments} segments, ${entries} entries, ${bytes} bytes: ${findings.length} problems`)
  }
  return checked.findings.length === 0 ? 0 : 1
}

const aliveMs = 60_000

const reindex = async (call: Call): Promise<number> => {
  const { out, err } = call.terminal
  const store = storeOf(call)
  if (store === null) return 2
  const pool = await call.database()
  const at = await readNow(pool)
  if (await isArchiving(pool, at)) {
    err('a process archives: stop it, or leave "archive" out of its roles, and try again')
    return 2
  }
  const withoutDamaged = flag(call, 'without-damaged')
  const made = await reindexArchive({ pool, store, at, withoutDamaged })
  if (flag(call, 'json')) out(JSON.stringify(made, null, 2))
  else {
    const { leftOut, refused } = made
    for (const { path, problem } of refused) err(`${path}: ${problem}`)
    if (leftOut > refused.length) err(`and ${leftOut - refused.length} more`)
    if (made.isMade) out(`the index has ${made.segments} segments with ${made.entries} entries`)
    else
      err(
        'nothing was changed: bring these files back from a copy, or give --without-damaged to leave them out; what is left out is removed when Millrace archives again',
      )
  }
  return made.isMade ? 0 : 1
}

const readNow = async (sql: Sql): Promise<Date> => {
  const { rows } = await sql.query<{ at: Date }>('select clock_timestamp() as at')
  return rows[0]?.at ?? new Date()
}

const isArchiving = async (sql: Sql, at: Date): Promise<boolean> => {
  const { rows } = await sql.query(
    `select from process where 'archive' = any(roles) and beat_at >= $1`,
    [new Date(at.getTime() - aliveMs)],
  )
  return rows.length > 0
}
