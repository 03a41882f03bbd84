// `millrace dead`: looks through messages that were given up, and sends them again.
import { type Ask, adminOptions, failing, print, theOne, withAdmin } from './client.ts'
import { type Call, type Command, flag, text } from './command.ts'
import {
  destinationsOf,
  idOf,
  isSteering,
  listJobs,
  numberOf,
  steerJob,
  type Table,
} from './job.ts'

const filterUsage =
  '[--reason R] [--type T] [--status N] [--message ID] [--since TIME] [--until TIME]'

export const command: Command = {
  name: 'dead',
  summary: 'search messages that were given up, and send them again',
  usage: [
    `list [--destination NAME] ${filterUsage} [--limit 100]`,
    'show ID',
    `recover DESTINATION ${filterUsage} [--rate 100] [--dry-run]`,
    'recoveries [--destination NAME]',
    'pause RECOVERY',
    'resume RECOVERY',
    'cancel RECOVERY',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    destination: { type: 'string' },
    reason: { type: 'string' },
    type: { type: 'string' },
    status: { type: 'string' },
    message: { type: 'string' },
    since: { type: 'string' },
    until: { type: 'string' },
    limit: { type: 'string' },
    rate: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'recoveries' && name === undefined) return listJobs(call, ask, table)
      if (verb === 'show' && name !== undefined) return show(call, ask, idOf(name))
      if (verb === 'recover' && name !== undefined) return recover(call, ask, name)
      if (isSteering(verb) && name !== undefined) {
        const path = `/admin/v1/recoveries/${idOf(name)}`
        return steerJob<Recovery>(ask, path, verb).then((recovery) => tell(call, recovery))
      }
      throw failing(
        ['say "list", "show ID", "recover DESTINATION", "recoveries", or "pause|resume|cancel ID"'],
        2,
      )
    }),
}

type Dead = {
  readonly id: number
  readonly destinationId: number
  readonly messageId: string
  readonly type: string
  readonly reason: string
  readonly status: number | null
  readonly attempts: number
  readonly deadAt: string
  readonly replayedAt: string | null
}

const filters = ['reason', 'type', 'status', 'since', 'until'] as const

/** As the admin API takes them in a query. */
const filterOf = (call: Call): Readonly<Record<string, string>> => {
  const given = filters.map((name) => [name, text(call, name)] as const)
  return Object.fromEntries(
    [...given, ['messageId', text(call, 'message')] as const].flatMap(([name, value]) =>
      value === null ? [] : [[name, value]],
    ),
  )
}

const list = async (call: Call, ask: Ask): Promise<number> => {
  const destinations = await destinationsOf(call, ask)
  const wanted = text(call, 'destination')
  const query = new URLSearchParams(filterOf(call))
  if (wanted !== null)
    query.set('destinationId', String(theOne(destinations, 'destination', wanted).id))
  const limit = text(call, 'limit')
  if (limit !== null) query.set('limit', limit)
  const answer = await ask<{ dead: readonly Dead[]; next: string | null }>({
    path: `/admin/v1/dead?${query}`,
  })
  const names = new Map(destinations.map(({ id, name }) => [id, name]))
  print(call, answer, [
    ['ID', 'DEAD', 'DESTINATION', 'TYPE', 'REASON', 'TRIES', 'MESSAGE', 'SENT AGAIN'],
    ...answer.dead.map(
      (dead) =>
        [
          String(dead.id),
          dead.deadAt,
          names.get(dead.destinationId) ?? String(dead.destinationId),
          dead.type,
          dead.reason,
          String(dead.attempts),
          harmless(dead.messageId),
          dead.replayedAt ?? '-',
        ] as const,
    ),
  ])
  if (answer.next !== null && !flag(call, 'json')) call.terminal.err('there are more')
  return 0
}

/** Clients choose message ids: a terminal must not obey one. */
const harmless = (shown: string): string => shown.replaceAll(/\p{Cc}/gu, '\ufffd')

const show = async (call: Call, ask: Ask, id: number): Promise<number> => {
  const dead = await ask<Dead & { body: string | null }>({ path: `/admin/v1/dead/${id}` })
  print(call, dead, [
    ['id', String(dead.id)],
    ['dead', dead.deadAt],
    ['type', dead.type],
    ['reason', dead.reason],
    ['tries', String(dead.attempts)],
    ['message', harmless(dead.messageId)],
    ['sent again', dead.replayedAt ?? 'no'],
    ['body', dead.body === null ? 'in the log' : harmless(dead.body)],
  ])
  return 0
}

type Recovery = {
  readonly id: number
  readonly destinationId: number
  readonly state: string
  readonly matched: number
  readonly recovered: number
  readonly waiting: number
  readonly delivered: number
  readonly diedAgain: number
  readonly createdAt: string
}

const recover = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const { id } = theOne(await destinationsOf(call, ask), 'destination', name)
  const { status, ...filter } = filterOf(call)
  const rate = text(call, 'rate')
  const body = {
    destinationId: id,
    ...filter,
    ...(status === undefined ? {} : { status: numberOf(status, 'status') }),
    ...(rate === null ? {} : { ratePerSecond: numberOf(rate, 'rate') }),
    ...(flag(call, 'dry-run') ? { dryRun: true } : {}),
  }
  const answer = await ask<Recovery>({ method: 'POST', path: '/admin/v1/recoveries', body })
  if (!flag(call, 'dry-run')) return tell(call, answer)
  const { matched } = answer
  print(call, answer, [[`would send ${matched} ${matched === 1 ? 'message' : 'messages'} again`]])
  return 0
}

const tell = (call: Call, recovery: Recovery): number => {
  print(call, recovery, [
    ['recovery', String(recovery.id)],
    ['state', recovery.state],
    ['matched', String(recovery.matched)],
    ['sent again', String(recovery.recovered)],
    ['on its way', String(recovery.waiting)],
    ['delivered', String(recovery.delivered)],
    ['dead again', String(recovery.diedAgain)],
  ])
  return 0
}

const table: Table<Recovery> = {
  jobs: 'recoveries',
  heads: ['STATE', 'MATCHED', 'SENT', 'WAITING', 'DELIVERED', 'DEAD'],
  cells: ({ state, matched, recovered, waiting, delivered, diedAgain }) => [
    state,
    String(matched),
    String(recovered),
    String(waiting),
    String(delivered),
    String(diedAgain),
  ],
}
