// What `delete-user`, `suppress` and `unsuppress` share: ids from arguments, a file or standard input, and requests of them.
import { readFile } from 'node:fs/promises'
import { text as readStream } from 'node:stream/consumers'
import { requestLimits } from '../erase/request.ts'
import { type Ask, failing, print, workspaceOf } from './client.ts'
import { type Call, text, texts } from './command.ts'

export const idOptions = {
  workspace: { type: 'string' },
  'anonymous-id': { type: 'string', multiple: true },
  file: { type: 'string' },
} as const

export type Ids = { readonly userIds: readonly string[]; readonly anonymousIds: readonly string[] }

/** A file has one user id a line, `-` is standard input. */
export const idsOf = async (call: Call, given: readonly string[]): Promise<Ids> => {
  const file = text(call, 'file')
  const lines = file === null ? [] : (await contentOf(file)).split(/\r?\n/)
  return {
    userIds: [...given, ...lines.filter((line) => line !== '')],
    anonymousIds: texts(call, 'anonymous-id'),
  }
}

const contentOf = (file: string): Promise<string> =>
  file === '-'
    ? readStream(process.stdin)
    : readFile(file, 'utf8').catch((error: Error) => {
        throw failing([`${file} cannot be read: ${error.message}`], 2)
      })

export type Deletion = {
  readonly id: number
  readonly kind: string
  readonly state: string
  readonly ids: number
}

type Requested = Ids & { readonly kind: string }

/** As many requests as the ids need. */
export const request = async (call: Call, ask: Ask, wish: Requested): Promise<number> => {
  const { kind, userIds, anonymousIds } = wish
  if (userIds.length + anonymousIds.length === 0)
    throw failing(['give a user id, --anonymous-id ID, or --file FILE with an id a line'], 2)
  const workspaceId = await workspaceOf(call, ask)
  const made: Deletion[] = []
  for (const part of partsOf(wish))
    made.push(
      await ask<Deletion>({
        method: 'POST',
        path: '/admin/v1/deletions',
        body: { kind, ...part, ...(workspaceId === null ? {} : { workspaceId }) },
      }),
    )
  const rows = made.flatMap(({ id, state, ids }): [string, string][] => [
    ['deletion request', String(id)],
    ['state', state],
    ['ids', String(ids)],
  ])
  print(call, made.length === 1 ? made[0] : made, rows)
  return 0
}

const partsOf = ({ userIds, anonymousIds }: Ids): readonly Ids[] => {
  const all = [
    ...userIds.map((value) => ({ isUser: true, value })),
    ...anonymousIds.map((value) => ({ isUser: false, value })),
  ]
  const parts: Ids[] = []
  for (let at = 0; at < all.length; at += requestLimits.idsMax) {
    const part = all.slice(at, at + requestLimits.idsMax)
    const of = (wanted: boolean) =>
      part.filter(({ isUser }) => isUser === wanted).map(({ value }) => value)
    parts.push({ userIds: of(true), anonymousIds: of(false) })
  }
  return parts
}
