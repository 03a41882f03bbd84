// What the commands for audiences and for computed traits have in common: list, show, add.
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
import { type Call, type Command, text, texts } from './command.ts'

/** An audience or a computed trait, as the admin API shows it. */
export type Synced = {
  readonly id: number
  readonly name: string
  readonly key: string
  readonly syncEvery: string
  readonly timezone: string
  readonly state: string
}

/** One of the two kinds, to a person and to the API. */
type Shape<T extends Synced> = {
  readonly name: 'audience' | 'trait'
  readonly noun: string
  readonly path: string
  readonly plural: string
  /** Of the definition: the option, and the field of the request. */
  readonly defined: string
  /** Yes or no, by option: the field of the request. */
  readonly switches: Readonly<Record<string, string>>
  readonly summary: string
  readonly columns: readonly (readonly [string, (one: T) => string])[]
  readonly lines: (one: T) => readonly (readonly [string, string])[]
  /** Verbs of its own. */
  readonly verbs: Readonly<Record<string, (call: Call, ask: Ask) => Promise<number>>>
  readonly usage: readonly string[]
  readonly options?: Command['options']
}

const usageOf = <T extends Synced>({ defined, switches, usage }: Shape<T>): readonly string[] => [
  'list [--workspace NAME]',
  'show NAME [--workspace NAME]',
  [
    `add NAME --${defined} FILE|TEXT [--destination NAME…] [--sync-every 2h30m] [--timezone ZONE]`,
    ...Object.keys(switches).map((option) => `[--${option} yes|no]`),
    '[--workspace NAME]',
  ].join(' '),
  ...usage,
]

export const syncedCommand = <T extends Synced>(shape: Shape<T>): Command => ({
  name: shape.name,
  summary: shape.summary,
  usage: usageOf(shape),
  options: {
    ...adminOptions,
    workspace: { type: 'string' },
    [shape.defined]: { type: 'string' },
    destination: { type: 'string', multiple: true },
    'sync-every': { type: 'string' },
    timezone: { type: 'string' },
    ...Object.fromEntries(
      Object.keys(shape.switches).map((option) => [option, { type: 'string' as const }]),
    ),
    ...shape.options,
  },
  positionals: { min: 1, max: 3 },
  run: (call) => withAdmin(call, (ask) => runVerb(call, ask, shape)),
})

const runVerb = <T extends Synced>(call: Call, ask: Ask, shape: Shape<T>): Promise<number> => {
  const [verb = '', name, ...rest] = call.positionals
  const own = Object.hasOwn(shape.verbs, verb) ? shape.verbs[verb] : undefined
  if (own !== undefined) return own(call, ask)
  if (rest.length > 0) throw failing([sayOne(shape)], 2)
  if (verb === 'list' && name === undefined) return list(call, ask, shape)
  if (verb === 'show' && name !== undefined) return show(call, { ask, shape, name })
  if (verb === 'add' && name !== undefined) return add(call, { ask, shape, name })
  throw failing([sayOne(shape)], 2)
}

const sayOne = ({ verbs }: { readonly verbs: object }): string =>
  `say "list", "show NAME", "add NAME"${Object.keys(verbs)
    .map((verb) => `, "${verb}"`)
    .join('')}`

type Shapeless = { readonly path: string; readonly plural: string }

export const loadSynced = async <T extends Synced>(
  call: Call,
  ask: Ask,
  { path, plural }: Shapeless,
): Promise<readonly T[]> => {
  const found = await ask<Record<string, readonly T[]>>({
    path: narrowed(path, await workspaceOf(call, ask)),
  })
  return found[plural] ?? []
}

const list = async <T extends Synced>(call: Call, ask: Ask, shape: Shape<T>): Promise<number> => {
  const all = await loadSynced<T>(call, ask, shape)
  print(call, { [shape.plural]: all }, [
    ['ID', 'NAME', 'KEY', 'STATE', ...shape.columns.map(([head]) => head), 'SYNC EVERY'],
    ...all.map((one): readonly [string, ...string[]] => [
      String(one.id),
      ...[one.name, one.key, one.state],
      ...shape.columns.map(([, cell]) => cell(one)),
      one.syncEvery,
    ]),
  ])
  return 0
}

type Named<T extends Synced> = {
  readonly ask: Ask
  readonly shape: Shape<T>
  readonly name: string
}

const show = async <T extends Synced>(
  call: Call,
  { ask, shape, name }: Named<T>,
): Promise<number> => {
  tell(call, shape, theOne(await loadSynced<T>(call, ask, shape), shape.noun, name))
  return 0
}

const tell = <T extends Synced>(call: Call, shape: Shape<T>, one: T): void =>
  print(call, one, [
    ['id', String(one.id)],
    ['key', one.key],
    ['state', one.state],
    ['sync every', one.syncEvery],
    ['timezone', one.timezone],
    ...shape.lines(one),
  ])

type Destinations = {
  readonly destinations: readonly { readonly id: number; readonly name: string }[]
}

const add = async <T extends Synced>(
  call: Call,
  { ask, shape, name }: Named<T>,
): Promise<number> => {
  const workspaceId = await workspaceOf(call, ask)
  const path = narrowed('/admin/v1/destinations', workspaceId)
  const { destinations } = await ask<Destinations>({ path })
  const syncEvery = text(call, 'sync-every')
  const timezone = text(call, 'timezone')
  const given = text(call, shape.defined)
  if (given === null)
    throw failing(
      [`give the definition with --${shape.defined}: a file, JSON, or the text form`],
      2,
    )
  const one = await ask<T>({
    method: 'POST',
    path: shape.path,
    body: {
      name,
      ...(workspaceId === null ? {} : { workspaceId }),
      [shape.defined]: await readDefinition(given),
      destinationIds: texts(call, 'destination').map(
        (each) => theOne(destinations, 'destination', each).id,
      ),
      ...(syncEvery === null ? {} : { syncEvery }),
      ...(timezone === null ? {} : { timezone }),
      ...switchesOf(call, shape.switches),
    },
  })
  tell(call, shape, one)
  return 0
}

/** The text form as it is, or the JSON or YAML of a file. */
export const readDefinition = async (given: string): Promise<unknown> =>
  /^\s*(NOT\b|[a-z_]+\(|\()/.test(given) ? given : readValue(given)

const switchesOf = (call: Call, switches: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(switches).flatMap(([option, field]) => {
      const said = text(call, option)
      return said === null ? [] : [[field, yesOrNo(said, option)]]
    }),
  )
