// `millrace delete-user`: asks for users to be deleted, and shows what was asked for.
import {
  type Ask,
  adminOptions,
  failing,
  narrowed,
  print,
  withAdmin,
  workspaceOf,
} from './client.ts'
import { type Call, type Command, flag } from './command.ts'
import { idOptions, idsOf, request } from './deletion-request.ts'

export const command: Command = {
  name: 'delete-user',
  summary: 'ask for users to be deleted, or show such requests',
  usage: [
    'create USER_ID… [--anonymous-id ID] [--file FILE|-] [--suppress] [--workspace NAME]',
    'show REQUEST_ID',
    'list [--workspace NAME]',
  ],
  options: { ...adminOptions, ...idOptions, suppress: { type: 'boolean' } },
  positionals: { min: 1, max: 5_001 },
  run: (call) =>
    withAdmin(call, async (ask) => {
      const [verb, ...given] = call.positionals
      if (verb === 'list' && given.length === 0) return list(call, ask)
      if (verb === 'show' && given.length === 1) return show(call, ask, given[0] as string)
      if (verb !== 'create') throw failing(['say "create USER_ID", "show REQUEST_ID" or "list"'], 2)
      const kind = flag(call, 'suppress') ? 'suppress_with_delete' : 'delete_only'
      return request(call, ask, { kind, ...(await idsOf(call, given)) })
    }),
}

type Deletion = {
  readonly id: number
  readonly kind: string
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly ids: number
  readonly origin: string
  readonly state: string
  readonly createdAt: string
  readonly finishedAt: string | null
  readonly stores: Readonly<
    Record<string, { readonly state: string; readonly rows: number | null }>
  >
  readonly destinations: readonly {
    readonly sourceId: number
    readonly destinationId: number
    readonly notices: number
    readonly state: string
  }[]
}

const list = async (call: Call, ask: Ask): Promise<number> => {
  const path = narrowed('/admin/v1/deletions', await workspaceOf(call, ask))
  const answer = await ask<{ deletions: readonly Deletion[] }>({ path })
  print(call, answer, [
    ['ID', 'USER', 'ANONYMOUS ID', 'IDS', 'KIND', 'BY', 'STATE', 'RECEIVED'],
    ...answer.deletions.map(
      ({ id, userId, anonymousId, ids, kind, origin, state, createdAt }): [string, ...string[]] => [
        ...([String(id), userId ?? '-', anonymousId ?? '-', String(ids)] as const),
        ...[kind, origin, state, createdAt],
      ],
    ),
  ])
  return 0
}

const show = async (call: Call, ask: Ask, id: string): Promise<number> => {
  if (!/^\d+$/.test(id)) throw failing(['a request is shown by its number, as "list" has it'], 2)
  const deletion = await ask<Deletion>({ path: `/admin/v1/deletions/${id}` })
  print(call, deletion, [
    ['deletion request', String(deletion.id)],
    ['kind', deletion.kind],
    ['state', deletion.state],
    ['received', deletion.createdAt],
    ['finished', deletion.finishedAt ?? '-'],
    ...Object.entries(deletion.stores).map(([store, { state, rows }]): [string, string] => [
      store,
      rows === null ? state : `${state}, ${rows}`,
    ]),
    ...deletion.destinations.map((told): [string, string] => [
      `destination ${told.destinationId}`,
      `${told.notices} notices of source ${told.sourceId} ${told.state}`,
    ]),
  ])
  return 0
}
