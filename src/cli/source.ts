// `millrace source`: lists sources and adds one.
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
  name: 'source',
  summary: 'list sources, or add one and see its keys',
  usage: [
    'list [--workspace NAME]',
    'add NAME --class web|mobile|server [--write-key KEY] [--secret-key KEY] [--workspace NAME]',
  ],
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    class: { type: 'string' },
    'write-key': { type: 'string' },
    'secret-key': { type: 'string' },
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

type Source = {
  readonly id: number
  readonly name: string
  readonly class: string
  readonly writeKey: string
  readonly secretKey?: string
  readonly enabled: boolean
}

const list = async (call: Call, ask: Ask): Promise<number> => {
  const path = narrowed('/admin/v1/sources', await workspaceOf(call, ask))
  const answer = await ask<{ sources: readonly Source[] }>({ path })
  print(call, answer, [
    ['ID', 'NAME', 'CLASS', 'WRITE KEY', 'ENABLED'],
    ...answer.sources.map(
      ({ id, name, class: sourceClass, writeKey, enabled }) =>
        [String(id), name, sourceClass, writeKey, enabled ? 'yes' : 'no'] as const,
    ),
  ])
  return 0
}

const add = async (call: Call, ask: Ask, name: string): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const [writeKey, secretKey] = [text(call, 'write-key'), text(call, 'secret-key')]
  const source = await ask<Source>({
    method: 'POST',
    path: '/admin/v1/sources',
    body: {
      name,
      class: text(call, 'class') ?? 'server',
      ...(workspaceId === null ? {} : { workspaceId }),
      ...(writeKey === null ? {} : { writeKey }),
      ...(secretKey === null ? {} : { secretKey }),
    },
  })
  print(call, source, [
    ['id', String(source.id)],
    ['write key', source.writeKey],
    ['secret key', `${source.secretKey ?? ''}   (shown this once)`],
  ])
  return 0
}
