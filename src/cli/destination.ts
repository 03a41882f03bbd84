// `millrace destination`: lists destinations and adds one.
import {
  type Ask,
  adminOptions,
  failing,
  narrowed,
  print,
  theOne,
  withAdmin,
  workspaceOf,
} from './client.ts'
import { type Call, type Command, flag, text, texts } from './command.ts'

export const command: Command = {
  name: 'destination',
  summary: 'list destinations, or add one with up to five webhook URLs',
  usage: [
    'list [--workspace NAME]',
    'add NAME --webhook URL… [--header "Name: value"…] [--source NAME…] [--shared-secret SECRET] [--no-historical]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    webhook: { type: 'string', multiple: true },
    header: { type: 'string', multiple: true },
    source: { type: 'string', multiple: true },
    'shared-secret': { type: 'string' },
    'no-historical': { type: 'boolean' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'add' && name !== undefined) return add(call, ask, name)
      throw failing(['say "list" or "add NAME"'], 2)
    }),
}

type Destination = {
  readonly id: number
  readonly name: string
  readonly enabled: boolean
  readonly signed: boolean
  readonly sourceIds: readonly number[]
  readonly webhooks: readonly { readonly url: string }[]
}

type Sources = { readonly sources: readonly { readonly id: number; readonly name: string }[] }

const list = async (call: Call, ask: Ask): Promise<number> => {
  const path = narrowed('/admin/v1/destinations', await workspaceOf(call, ask))
  const answer = await ask<{ destinations: readonly Destination[] }>({ path })
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

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const { sources } = await ask<Sources>({ path: narrowed('/admin/v1/sources', workspaceId) })
  const sharedSecret = text(call, 'shared-secret')
  const headers = Object.fromEntries(texts(call, 'header').map(headerOf))
  const destination = await ask<Destination>({
    method: 'POST',
    path: '/admin/v1/destinations',
    body: {
      name,
      ...(workspaceId === null ? {} : { workspaceId }),
      sourceIds: texts(call, 'source').map((source) => theOne(sources, 'source', source).id),
      webhooks: texts(call, 'webhook').map((url) => ({ url, headers })),
      historical: !flag(call, 'no-historical'),
      ...(sharedSecret === null ? {} : { sharedSecret }),
    },
  })
  print(call, destination, [
    ['id', String(destination.id)],
    ...destination.webhooks.map(({ url }) => ['url', url] as const),
    ['signed', destination.signed ? 'yes' : 'no'],
  ])
  return 0
}

const headerOf = (line: string): readonly [string, string] => {
  const colon = line.indexOf(':')
  if (colon < 1) throw failing([`a header is written "Name: value", not "${line}"`], 2)
  return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
}
