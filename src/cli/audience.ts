// `millrace audience`: lists audiences, shows one, and adds one.
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
} from './client.ts'
import { type Call, type Command, text, texts } from './command.ts'

export const command: Command = {
  name: 'audience',
  summary: 'list audiences with their members, show one, or add one',
  usage: [
    'list [--workspace NAME]',
    'show NAME [--workspace NAME]',
    'add NAME --where FILE [--destination NAME…] [--sync-every 2h30m] [--workspace NAME]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    where: { type: 'string' },
    destination: { type: 'string', multiple: true },
    'sync-every': { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'show' && name !== undefined) return show(call, ask, name)
      if (verb === 'add' && name !== undefined) return add(call, ask, name)
      throw failing(['say "list", "show NAME" or "add NAME"'], 2)
    }),
}

export type Audience = {
  readonly id: number
  readonly name: string
  readonly key: string
  readonly where: object
  readonly syncEvery: string
  readonly state: string
  readonly members: number
  readonly anonymousMembers: number
}

export const loadAudiences = async (call: Call, ask: Ask): Promise<readonly Audience[]> => {
  const path = narrowed('/admin/v1/audiences', await workspaceOf(call, ask))
  return (await ask<{ audiences: readonly Audience[] }>({ path })).audiences
}

const list = async (call: Call, ask: Ask): Promise<number> => {
  const audiences = await loadAudiences(call, ask)
  print(call, { audiences }, [
    ['ID', 'NAME', 'KEY', 'STATE', 'MEMBERS', 'ANONYMOUS', 'SYNC EVERY'],
    ...audiences.map(
      (audience) =>
        [
          String(audience.id),
          audience.name,
          audience.key,
          audience.state,
          String(audience.members),
          String(audience.anonymousMembers),
          audience.syncEvery,
        ] as const,
    ),
  ])
  return 0
}

const show = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const audience = theOne(await loadAudiences(call, ask), 'audience', name)
  tell(call, audience)
  return 0
}

const tell = (call: Call, audience: Audience): void =>
  print(call, audience, [
    ['id', String(audience.id)],
    ['key', audience.key],
    ['state', audience.state],
    ['members', `${audience.members}, ${audience.anonymousMembers} of them anonymous`],
    ['sync every', audience.syncEvery],
    ['where', JSON.stringify(audience.where)],
  ])

type Destinations = {
  readonly destinations: readonly { readonly id: number; readonly name: string }[]
}

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const path = narrowed('/admin/v1/destinations', workspaceId)
  const { destinations } = await ask<Destinations>({ path })
  const syncEvery = text(call, 'sync-every')
  const audience = await ask<Audience>({
    method: 'POST',
    path: '/admin/v1/audiences',
    body: {
      name,
      ...(workspaceId === null ? {} : { workspaceId }),
      where: await readWhere(text(call, 'where')),
      destinationIds: texts(call, 'destination').map(
        (one) => theOne(destinations, 'destination', one).id,
      ),
      ...(syncEvery === null ? {} : { syncEvery }),
    },
  })
  tell(call, audience)
  return 0
}

const readWhere = (given: string | null): Promise<unknown> => {
  if (given === null) throw failing(['give the condition with --where FILE'], 2)
  return readValue(given)
}
