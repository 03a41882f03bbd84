// `millrace replay`: sends a past span of the log again to one destination, and watches over it.
import { type Ask, adminOptions, failing, print, theOne, withAdmin } from './client.ts'
import { type Call, type Command, flag, text, texts } from './command.ts'
import {
  destinationsOf,
  idOf,
  isSteering,
  listJobs,
  numberOf,
  sourcesOf,
  steerJob,
  type Table,
} from './job.ts'

const many = { type: 'string', multiple: true } as const

export const command: Command = {
  name: 'replay',
  summary: 'send past calls again to one destination',
  usage: [
    '[start] --destination NAME --from TIME|--reason R… [--until TIME] [--by receivedAt|timestamp] [--source NAME]… [--types T,T] [--event NAME]… [--user ID]… [--anonymous ID]… [--rate 1000] [--dry-run]',
    'list [--destination NAME]',
    'show REPLAY',
    'pause REPLAY',
    'resume REPLAY',
    'cancel REPLAY',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    destination: { type: 'string' },
    from: { type: 'string' },
    until: { type: 'string' },
    by: { type: 'string' },
    source: many,
    types: { type: 'string' },
    event: many,
    user: many,
    anonymous: many,
    reason: many,
    rate: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  positionals: { min: 0, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb = 'start', name] = call.positionals
      if (verb === 'start' && name === undefined) return start(call, ask)
      if (verb === 'list' && name === undefined) return listJobs(call, ask, table)
      if (verb === 'show' && name !== undefined) return show(call, ask, name)
      if (isSteering(verb) && name !== undefined)
        return steerJob<Replay>(ask, pathOf(name), verb).then((replay) => tell(call, replay))
      throw failing(['say "start", "list", "show ID", or "pause|resume|cancel ID"'], 2)
    }),
}

type Replay = {
  readonly id: number
  readonly destinationId: number
  readonly state: string
  readonly trouble: string | null
  readonly total: number | null
  readonly read: number
  readonly selected: number
  readonly sent: number
  readonly historical: number
  readonly filtered: number
  readonly unsendable: number
  readonly suppressed: number
  readonly duplicate: number
  readonly expired: number
  readonly waiting: number
  readonly parked: number
  readonly delivered: number
  readonly givenUp: number
  readonly etaSeconds: number | null
  readonly createdAt: string
}

type Count = {
  readonly complete: boolean
  readonly cursor: string | null
  readonly total: number
  readonly read: number
  readonly sendable: number
}

const start = async (call: Call, ask: Ask): Promise<number> => {
  const body = await bodyOf(call, ask)
  if (flag(call, 'dry-run')) return countAll(call, ask, body)
  return tell(call, await ask<Replay>({ method: 'POST', path: '/admin/v1/replays', body }))
}

const bodyOf = async (call: Call, ask: Ask): Promise<object> => {
  const [destination, since] = [text(call, 'destination'), text(call, 'from')]
  const reasons = texts(call, 'reason')
  if (destination === null || (since === null && reasons.length === 0))
    throw failing(['name a --destination, and say --from which time on, or a --reason'], 2)
  for (const option of ['from', 'until']) refuseNoTime(option, text(call, option))
  const { id } = theOne(await destinationsOf(call, ask), 'destination', destination)
  const rate = text(call, 'rate')
  const wanted = texts(call, 'source')
  const sources = wanted.length === 0 ? [] : await sourcesOf(call, ask)
  const given = {
    since,
    until: text(call, 'until'),
    by: text(call, 'by'),
    ratePerSecond: rate === null ? null : numberOf(rate, 'rate'),
    sourceIds: listOf(wanted.map((name) => theOne(sources, 'source', name).id)),
    types: listOf((text(call, 'types') ?? '').split(',').filter((type) => type !== '')),
    events: listOf(texts(call, 'event')),
    userIds: listOf(texts(call, 'user')),
    anonymousIds: listOf(texts(call, 'anonymous')),
    reasons: listOf(reasons),
  }
  const known = Object.entries(given).filter(([, value]) => value !== null)
  return { destinationId: id, ...Object.fromEntries(known) }
}

/** In the words of the command line; the API has others. */
const refuseNoTime = (option: string, given: string | null): void => {
  if (given !== null && !(/^\d{4}-\d\d-\d\d/.test(given) && Number.isFinite(Date.parse(given))))
    throw failing(
      [`--${option} takes a time in ISO 8601 like 2026-03-01T12:00:00Z, not "${given}"`],
      2,
    )
}

const listOf = <T>(all: readonly T[]): readonly T[] | null => (all.length === 0 ? null : all)

/** Each answer is a stretch of the log; until it is the last one the figures are of what was read. */
const countAll = async (call: Call, ask: Ask, body: object): Promise<number> => {
  let cursor: string | null = null
  for (;;) {
    const count: Count = await ask<Count>({
      method: 'POST',
      path: '/admin/v1/replays',
      body: { ...body, dryRun: true, ...(cursor === null ? {} : { cursor }) },
    })
    if (count.complete) {
      const { sendable } = count
      print(call, count, [[`would send ${sendable} ${sendable === 1 ? 'call' : 'calls'}`]])
      return 0
    }
    const share = Math.floor((100 * count.read) / Math.max(1, count.total))
    call.terminal.err(`read ${share} % of the span, ${count.sendable} calls so far`)
    cursor = count.cursor
  }
}

const tell = (call: Call, replay: Replay): number => {
  print(call, replay, [
    ['replay', String(replay.id)],
    ['state', replay.trouble === null ? replay.state : `${replay.state} (${replay.trouble})`],
    ['read', replay.total === null ? 'not started' : `${replay.read} of ${replay.total}`],
    ['selected', String(replay.selected)],
    ['withheld', String(replay.historical + replay.filtered + replay.unsendable)],
    ['left out', String(replay.suppressed + replay.duplicate)],
    ['expired', String(replay.expired)],
    ['sent', String(replay.sent)],
    ['waiting', String(replay.waiting)],
    ['parked', String(replay.parked)],
    ['delivered', String(replay.delivered)],
    ['given up', String(replay.givenUp)],
    ['left', replay.etaSeconds === null ? '-' : `${replay.etaSeconds} s`],
  ])
  return 0
}

const pathOf = (name: string) => `/admin/v1/replays/${idOf(name)}`

const show = async (call: Call, ask: Ask, name: string): Promise<number> =>
  tell(call, await ask<Replay>({ path: pathOf(name) }))

const table: Table<Replay> = {
  jobs: 'replays',
  heads: ['STATE', 'READ', 'SENT', 'DELIVERED', 'GIVEN UP'],
  cells: ({ state, total, read, sent, delivered, givenUp }) => [
    state,
    total === null ? '-' : `${read}/${total}`,
    String(sent),
    String(delivered),
    String(givenUp),
  ],
}
