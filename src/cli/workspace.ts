// `millrace workspace`: lists workspaces, adds one, and changes what is set for one.
import { type Ask, adminOptions, failing, print, theOne, withAdmin, yesOrNo } from './client.ts'
import { type Call, type Command, text } from './command.ts'

const switches = '[--regional-access yes|no] [--grandfathered yes|no]'

export const command: Command = {
  name: 'workspace',
  summary: 'list workspaces, add one, or set its regional access and plan',
  usage: ['list', `add NAME ${switches}`, `set NAME ${switches}`],
  options: {
    ...adminOptions,
    'regional-access': { type: 'string' },
    grandfathered: { type: 'string' },
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'add' && name !== undefined) return add(call, ask, name)
      if (verb === 'set' && name !== undefined) return set(call, ask, name)
      throw failing(['say "list", "add NAME" or "set NAME"'], 2)
    }),
}

type Workspace = {
  readonly id: number
  readonly name: string
  readonly regionalAccess: boolean
  readonly grandfathered: boolean
}

type Workspaces = { readonly workspaces: readonly Workspace[] }

const path = '/admin/v1/workspaces'

const list = async (call: Call, ask: Ask): Promise<number> => {
  const answer = await ask<Workspaces>({ path })
  print(call, answer, [
    ['ID', 'NAME', 'REGIONAL ACCESS', 'GRANDFATHERED'],
    ...answer.workspaces.map(
      ({ id, name, regionalAccess, grandfathered }) =>
        [String(id), name, regionalAccess ? 'yes' : 'no', grandfathered ? 'yes' : 'no'] as const,
    ),
  ])
  return 0
}

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  tell(call, await ask<Workspace>({ method: 'POST', path, body: { name, ...given(call) } }))
  return 0
}

const set = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const { workspaces } = await ask<Workspaces>({ path })
  const { id } = theOne(workspaces, 'workspace', name)
  const body = given(call)
  if (Object.keys(body).length === 0) throw failing(['say what to set'], 2)
  tell(call, await ask<Workspace>({ method: 'PATCH', path: `${path}/${id}`, body }))
  return 0
}

/** What the options say, as the admin API takes it. */
const given = (call: Call): Readonly<Record<string, unknown>> => {
  const [regionalAccess, grandfathered] = [
    text(call, 'regional-access'),
    text(call, 'grandfathered'),
  ]
  return {
    ...(regionalAccess === null
      ? {}
      : { regionalAccess: yesOrNo(regionalAccess, 'regional-access') }),
    ...(grandfathered === null ? {} : { grandfathered: yesOrNo(grandfathered, 'grandfathered') }),
  }
}

const tell = (call: Call, workspace: Workspace): void =>
  print(call, workspace, [
    ['id', String(workspace.id)],
    ['regional access', workspace.regionalAccess ? 'yes' : 'no'],
    ['grandfathered', workspace.grandfathered ? 'yes' : 'no'],
  ])
