// `millrace source`: lists sources, shows and adds them, and changes what is set for one.
import {
  type Ask,
  adminOptions,
  failing,
  narrowed,
  print,
  theOne,
  withAdmin,
  workspaceOf,
  yesOrNo,
} from './client.ts'
import { type Call, type Command, text } from './command.ts'
import {
  type Settings,
  settingOptions,
  settingRows,
  settingsGiven,
  settingUsage,
} from './source-settings.ts'

const setUsage =
  '[--class web|mobile|server] [--enabled yes|no] [--write-key KEY] [--secret-key KEY]'

export const command: Command = {
  name: 'source',
  summary: 'list sources, show one, add one and see its keys, or set what is set for one',
  usage: [
    'list [--workspace NAME]',
    'show NAME [--workspace NAME]',
    `add NAME --class web|mobile|server [--write-key KEY] [--secret-key KEY] ${settingUsage}`,
    `set NAME ${setUsage} ${settingUsage}`,
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    class: { type: 'string' },
    enabled: { type: 'string' },
    'write-key': { type: 'string' },
    'secret-key': { type: 'string' },
    ...settingOptions,
  },
  positionals: { min: 1, max: 2 },
  run: (call) =>
    withAdmin(call, (ask) => {
      const [verb, name] = call.positionals
      if (verb === 'list' && name === undefined) return list(call, ask)
      if (verb === 'show' && name !== undefined) return show(call, ask, name)
      if (verb === 'add' && name !== undefined) return add(call, ask, name)
      if (verb === 'set' && name !== undefined) return set(call, ask, name)
      throw failing(['say "list", "show NAME", "add NAME" or "set NAME"'], 2)
    }),
}

type Source = {
  readonly id: number
  readonly name: string
  readonly class: string
  readonly writeKey: string
  readonly secretKey?: string
  readonly enabled: boolean
} & Settings

type Sources = { readonly sources: readonly Source[] }

const load = async (call: Call, ask: Ask): Promise<Sources> =>
  ask<Sources>({ path: narrowed('/admin/v1/sources', await workspaceOf(call, ask)) })

const list = async (call: Call, ask: Ask): Promise<number> => {
  const answer = await load(call, ask)
  print(call, answer, [
    ['ID', 'NAME', 'CLASS', 'WRITE KEY', 'ENABLED'],
    ...answer.sources.map(
      ({ id, name, class: sourceClass, writeKey, enabled }) =>
        [String(id), name, sourceClass, writeKey, enabled ? 'yes' : 'no'] as const,
    ),
  ])
  return 0
}

const show = async (call: Call, ask: Ask, name: string): Promise<number> => {
  tell(call, theOne((await load(call, ask)).sources, 'source', name))
  return 0
}

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const source = await ask<Source>({
    method: 'POST',
    path: '/admin/v1/sources',
    body: {
      name,
      class: 'server',
      ...(workspaceId === null ? {} : { workspaceId }),
      ...(await given(call)),
    },
  })
  print(call, source, [
    ['id', String(source.id)],
    ['write key', source.writeKey],
    ['secret key', `${source.secretKey ?? ''}   (shown this once)`],
  ])
  return 0
}

const set = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const { id } = theOne((await load(call, ask)).sources, 'source', name)
  const body = await given(call)
  if (Object.keys(body).length === 0) throw failing(['say what to set'], 2)
  tell(call, await ask<Source>({ method: 'PATCH', path: `/admin/v1/sources/${id}`, body }))
  return 0
}

/** What the options say, as the admin API takes it. */
const given = async (call: Call): Promise<Readonly<Record<string, unknown>>> => {
  const [sourceClass, enabled] = [text(call, 'class'), text(call, 'enabled')]
  const [writeKey, secretKey] = [text(call, 'write-key'), text(call, 'secret-key')]
  return {
    ...(sourceClass === null ? {} : { class: sourceClass }),
    ...(enabled === null ? {} : { enabled: yesOrNo(enabled, 'enabled') }),
    ...(writeKey === null ? {} : { writeKey }),
    ...(secretKey === null ? {} : { secretKey }),
    ...(await settingsGiven(call)),
  }
}

const tell = (call: Call, source: Source): void =>
  print(call, source, [
    ['id', String(source.id)],
    ['class', source.class],
    ['write key', source.writeKey],
    ['enabled', source.enabled ? 'yes' : 'no'],
    ...settingRows(source),
  ])
