// `millrace delete-user`: asks for a user to be deleted, and lists what was asked for.
import {
  type Ask,
  adminOptions,
  failing,
  narrowed,
  print,
  withAdmin,
  workspaceOf,
} from './client.ts'
import { type Call, type Command, text } from './command.ts'

export const command: Command = {
  name: 'delete-user',
  summary: 'ask for a user to be deleted, or list such requests',
  usage: [
    'create USER_ID [--workspace NAME]',
    'create --anonymous-id ID [--workspace NAME]',
    'list [--workspace NAME]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    'anonymous-id': { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, userId = null] = call.positionals
      const anonymousId = text(call, 'anonymous-id')
      if (verb === 'list' && userId === null && anonymousId === null) return list(call, ask)
      if (verb === 'create' && (userId !== null || anonymousId !== null))
        return create(call, ask, { userId, anonymousId })
      throw failing(['say "create USER_ID", "create --anonymous-id ID" or "list"'], 2)
    }),
}

type Deletion = {
  readonly id: number
  readonly workspaceId: number
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly origin: string
  readonly state: string
  readonly createdAt: string
}

const list = async (call: Call, ask: Ask): Promise<number> => {
  const path = narrowed('/admin/v1/deletions', await workspaceOf(call, ask))
  const answer = await ask<{ deletions: readonly Deletion[] }>({ path })
  print(call, answer, [
    ['ID', 'USER', 'ANONYMOUS ID', 'BY', 'STATE', 'RECEIVED'],
    ...answer.deletions.map(
      ({ id, userId, anonymousId, origin, state, createdAt }) =>
        [String(id), userId ?? '-', anonymousId ?? '-', origin, state, createdAt] as const,
    ),
  ])
  return 0
}

type Who = { readonly userId: string | null; readonly anonymousId: string | null }

const create = async (call: Call, ask: Ask, { userId, anonymousId }: Who): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const deletion = await ask<Deletion>({
    method: 'POST',
    path: '/admin/v1/deletions',
    body: {
      ...(workspaceId === null ? {} : { workspaceId }),
      ...(userId === null ? {} : { userId }),
      ...(anonymousId === null ? {} : { anonymousId }),
    },
  })
  print(call, deletion, [
    ['deletion request', String(deletion.id)],
    ['state', deletion.state],
  ])
  return 0
}
