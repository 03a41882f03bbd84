// `millrace audience preview`: how many users a condition would hold for, and what an edit would change.
import { type Ask, failing, print, theOne, workspaceOf, yesOrNo } from './client.ts'
import { type Call, text } from './command.ts'
import { loadSynced, readDefinition } from './synced.ts'

type Tally = {
  readonly users: number
  readonly identifiedUsers: number
  readonly sample: readonly string[]
}

type Preview = {
  readonly at: string
  readonly exact: boolean
  readonly readFrom: 'users' | 'log'
  readonly users: number
  readonly usersRead: number
  readonly callsRead: number | null
  readonly members: Tally
  readonly entering: Tally | null
  readonly leaving: Tally | null
}

export const previewUsage =
  'preview [NAME] --where FILE|TEXT [--timezone ZONE] [--include-anonymous yes|no] [--workspace NAME]'

/** With a name: what that edit of the audience would change. */
export const preview = async (call: Call, ask: Ask): Promise<number> => {
  const [, name] = call.positionals
  const given = text(call, 'where')
  if (given === null && name === undefined)
    throw failing(['give the condition with --where: a file, JSON, or the text form'], 2)
  const timezone = text(call, 'timezone')
  const anonymous = text(call, 'include-anonymous')
  const body = {
    ...(given === null ? {} : { where: await readDefinition(given) }),
    ...(timezone === null ? {} : { timezone }),
    ...(anonymous === null ? {} : { includeAnonymous: yesOrNo(anonymous, 'include-anonymous') }),
  }
  const found = await ask<Preview>({ method: 'POST', ...(await wanted(call, { ask, body })) })
  print(call, found, [
    ['', 'USERS', 'WITH A USER ID', 'SAMPLE'],
    row('members', found.members),
    ...(found.entering === null ? [] : [row('entering', found.entering)]),
    ...(found.leaving === null ? [] : [row('leaving', found.leaving)]),
    ['of', String(found.users), '', readOf(found)],
  ])
  return 0
}

const wanted = async (
  call: Call,
  { ask, body }: { readonly ask: Ask; readonly body: object },
): Promise<{ readonly path: string; readonly body: object }> => {
  const [, name] = call.positionals
  const shape = { path: '/admin/v1/audiences', plural: 'audiences' }
  if (name !== undefined) {
    const { id } = theOne(await loadSynced(call, ask, shape), 'audience', name)
    return { path: `${shape.path}/${id}/preview`, body }
  }
  const workspaceId = await workspaceOf(call, ask)
  return {
    path: `${shape.path}/preview`,
    body: { ...body, ...(workspaceId === null ? {} : { workspaceId }) },
  }
}

const row = (what: string, { users, identifiedUsers, sample }: Tally) =>
  [what, String(users), String(identifiedUsers), sample.join(' ')] as const

const readOf = ({ exact, usersRead, callsRead }: Preview): string => {
  const read = [`${usersRead} users`, ...(callsRead === null ? [] : [`${callsRead} calls`])]
  return `${exact ? 'exact' : 'reckoned'}, from ${read.join(' and ')}`
}
