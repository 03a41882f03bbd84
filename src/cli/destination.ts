// `millrace destination`: lists destinations, shows and adds them, and changes what is set for one.
import {
  type Ask,
  adminOptions,
  failing,
  narrowed,
  print,
  readValue,
  theOne,
  withAdmin,
  workspaceOf,
  yesOrNo,
} from './client.ts'
import { type Call, type Command, flag, text, texts } from './command.ts'
import {
  type DestinationSettings,
  destinationGiven,
  destinationOptions,
  destinationRows,
  destinationUsage,
  webhooksGiven,
} from './destination-settings.ts'
import { testDestination } from './destination-test.ts'

const sharedUsage = [
  '[--source NAME…] [--shared-secret SECRET|generate] [--filters FILE|none]',
  '[--historical yes|no] [--historical-after 24h] [--enabled yes|no] [--workspace NAME]',
  destinationUsage,
].join(' ')

export const command: Command = {
  name: 'destination',
  summary:
    'list destinations, show one, add one with up to five URLs, set it, or replace its secret',
  usage: [
    'list [--workspace NAME]',
    'show NAME [--workspace NAME]',
    `add NAME --webhook URL… ${sharedUsage}`,
    `set NAME [--webhook URL…] ${sharedUsage}`,
    'secret NAME [--shared-secret SECRET] [--after 24h | --at TIME] [--workspace NAME]   (generated when none is given)',
    'secret NAME --cancel [--workspace NAME]   (the one there is goes on signing)',
    'test NAME [--type track] [--workspace NAME]   (a sample message to each URL, now)',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    webhook: { type: 'string', multiple: true },
    source: { type: 'string', multiple: true },
    'shared-secret': { type: 'string' },
    filters: { type: 'string' },
    historical: { type: 'string' },
    'no-historical': { type: 'boolean' },
    'historical-after': { type: 'string' },
    enabled: { type: 'string' },
    ...destinationOptions,
    after: { type: 'string' },
    at: { type: 'string' },
    cancel: { type: 'boolean' },
    type: { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'show' && name !== undefined) return show(call, ask, name)
      if (verb === 'add' && name !== undefined) return add(call, ask, name)
      if (verb === 'set' && name !== undefined) return set(call, ask, name)
      if (verb === 'secret' && name !== undefined) return replaceSecret(call, ask, name)
      if (verb === 'test' && name !== undefined) return test(call, ask, name)
      throw failing(
        ['say "list", "show NAME", "add NAME", "set NAME", "secret NAME" or "test NAME"'],
        2,
      )
    }),
}

type Destination = DestinationSettings & {
  readonly id: number
  readonly name: string
  readonly enabled: boolean
  readonly sourceIds: readonly number[]
  readonly historical: boolean
  readonly historicalAfter: string
  readonly filters: readonly object[]
}

type Destinations = { readonly destinations: readonly Destination[] }

type Sources = { readonly sources: readonly { readonly id: number; readonly name: string }[] }

const load = async (call: Call, ask: Ask): Promise<Destinations> =>
  ask<Destinations>({ path: narrowed('/admin/v1/destinations', await workspaceOf(call, ask)) })

const list = async (call: Call, ask: Ask): Promise<number> => {
  const answer = await load(call, ask)
  const { sources } = await ask<Sources>({ path: '/admin/v1/sources' })
  const names = new Map(sources.map(({ id, name }) => [id, name]))
  print(call, answer, [
    ['ID', 'NAME', 'ENABLED', 'SIGNED', 'SOURCES', 'URLS'],
    ...answer.destinations.map(
      (destination) =>
        [
          String(destination.id),
          destination.name,
          destination.enabled ? 'yes' : 'no',
          destination.signed ? 'yes' : 'no',
          destination.sourceIds.map((id) => names.get(id) ?? id).join(','),
          destination.webhooks.map(({ url }) => url).join(' '),
        ] as const,
    ),
  ])
  return 0
}

const show = async (call: Call, ask: Ask, name: string): Promise<number> => {
  tell(call, theOne((await load(call, ask)).destinations, 'destination', name))
  return 0
}

const test = async (call: Call, ask: Ask, name: string): Promise<number> =>
  testDestination(call, ask, theOne((await load(call, ask)).destinations, 'destination', name).id)

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const body = {
    name,
    ...(workspaceId === null ? {} : { workspaceId }),
    webhooks: [],
    ...(await given(call, ask, workspaceId)),
  }
  tell(call, await ask<Destination>({ method: 'POST', path: '/admin/v1/destinations', body }))
  return 0
}

const set = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const { id } = theOne((await load(call, ask)).destinations, 'destination', name)
  const body = await given(call, ask, await workspaceOf(call, ask))
  if (Object.keys(body).length === 0) throw failing(['say what to set'], 2)
  const path = `/admin/v1/destinations/${id}`
  tell(call, await ask<Destination>({ method: 'PATCH', path, body }))
  return 0
}

const replaceSecret = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const { id } = theOne((await load(call, ask)).destinations, 'destination', name)
  const path = `/admin/v1/destinations/${id}`
  if (flag(call, 'cancel')) {
    const body = { nextSharedSecret: null }
    tell(call, await ask<Destination>({ method: 'PATCH', path, body }))
    return 0
  }
  const [secret, after, activateAt] = [
    text(call, 'shared-secret'),
    text(call, 'after'),
    text(call, 'at'),
  ]
  const body = {
    ...(secret === null || secret === 'generate' ? {} : { secret }),
    ...(after === null ? {} : { after }),
    ...(activateAt === null ? {} : { activateAt }),
  }
  tell(call, await ask<Destination>({ method: 'POST', path: `${path}/secret`, body }))
  return 0
}

/** What the options say, as the admin API takes it. */
const given = async (
  call: Call,
  ask: Ask,
  workspaceId: number | null,
): Promise<Readonly<Record<string, unknown>>> => {
  const [webhooks, names] = [await webhooksGiven(call), texts(call, 'source')]
  const { sources } =
    names.length === 0
      ? { sources: [] }
      : await ask<Sources>({ path: narrowed('/admin/v1/sources', workspaceId) })
  const [sharedSecret, historicalAfter] = [
    text(call, 'shared-secret'),
    text(call, 'historical-after'),
  ]
  const [filters, enabled] = [text(call, 'filters'), text(call, 'enabled')]
  const historical = flag(call, 'no-historical') ? 'no' : text(call, 'historical')
  return {
    ...(webhooks === null ? {} : { webhooks }),
    ...destinationGiven(call),
    ...(names.length === 0
      ? {}
      : { sourceIds: names.map((source) => theOne(sources, 'source', source).id) }),
    ...(sharedSecret === null ? {} : { sharedSecret }),
    ...(historical === null ? {} : { historical: yesOrNo(historical, 'historical') }),
    ...(historicalAfter === null ? {} : { historicalAfter }),
    ...(enabled === null ? {} : { enabled: yesOrNo(enabled, 'enabled') }),
    ...(filters === null ? {} : { filters: filters === 'none' ? [] : await readValue(filters) }),
  }
}

const tell = (call: Call, destination: Destination): void =>
  print(call, destination, [
    ['id', String(destination.id)],
    ...destinationRows(destination),
    ['enabled', destination.enabled ? 'yes' : 'no'],
    ['historical', destination.historical ? 'yes' : `no, after ${destination.historicalAfter}`],
    ...destination.filters.map((filter) => ['filter', JSON.stringify(filter)] as const),
  ])
