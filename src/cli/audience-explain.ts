// `millrace audience explain`: why one user is in an audience or is not, comparison by comparison.
import { type Ask, failing, print, theOne } from './client.ts'
import { type Call, flag, text } from './command.ts'
import { loadSynced } from './synced.ts'

export type Fact = {
  readonly name: string
  readonly value: unknown
  readonly orMore: boolean
  readonly windowFrom: string | null
  readonly windowUntil: string | null
  readonly capped: boolean
}

export type Turning = { readonly changesAt: string | null; readonly changesExactly: boolean }

type Node = Turning & {
  readonly type: string
  readonly holds: boolean
  readonly of?: readonly Node[]
  readonly says?: string
  readonly facts?: readonly Fact[]
  readonly takes?: string | null
}

type Explanation = Turning & {
  readonly at: string
  readonly member: boolean
  /** Of an audience of accounts. */
  readonly quantifier: string | null
  readonly synced: boolean
  readonly enteredAt: string | null
  readonly where: Node
}

export const explainUsage =
  'explain NAME USER [--anonymous] [--at 2026-12-24T08:00:00Z] [--workspace NAME]'

export const explain = async (call: Call, ask: Ask): Promise<number> => {
  const [, name, user] = call.positionals
  if (name === undefined || user === undefined)
    throw failing(['say "explain NAME USER": the audience, and a user id'], 2)
  const shape = { path: '/admin/v1/audiences', plural: 'audiences' }
  const { id } = theOne(await loadSynced(call, ask, shape), 'audience', name)
  const at = text(call, 'at')
  const query = new URLSearchParams({
    [flag(call, 'anonymous') ? 'anonymousId' : 'userId']: user,
    ...(at === null ? {} : { at }),
  })
  const found = await ask<Explanation>({ path: `${shape.path}/${id}/explain?${query}` })
  print(call, found, [
    ['as of', found.at],
    ['in it', yes(found.member)],
    ...(found.quantifier === null
      ? [['changes', turning(found) || 'not by time alone'] as const]
      : [
          [
            'if',
            `${found.quantifier} of an account's users meet what is asked of this one here`,
          ] as const,
        ]),
    ['entered', found.enteredAt ?? 'not'],
    ['told', found.synced ? 'destinations know' : 'destinations do not know'],
  ])
  if (flag(call, 'json')) return 0
  call.terminal.out('')
  for (const line of linesOf(found.where, 0)) call.terminal.out(line)
  return 0
}

const yes = (is: boolean): string => (is ? 'yes' : 'no')

export const turning = ({ changesAt, changesExactly }: Turning): string => {
  if (changesAt === null) return ''
  return changesExactly ? `at ${changesAt}` : `not before ${changesAt}`
}

const groups: Readonly<Record<string, string>> = {
  all: 'all of these',
  any: 'any of these',
  not: 'not this',
}

const linesOf = (node: Node, depth: number): readonly string[] => {
  const before = `${node.holds ? 'yes' : 'no '} ${'  '.repeat(depth)}`
  if (node.of !== undefined)
    return [
      `${before}${groups[node.type] ?? node.type}`,
      ...node.of.flatMap((child) => linesOf(child, depth + 1)),
    ]
  const said = [
    ...(node.facts ?? []).map(factText),
    ...(node.takes ? [`it takes ${node.takes}`] : []),
    ...(node.changesAt === null ? [] : [`changes ${turning(node)}`]),
  ]
  const indented = `    ${'  '.repeat(depth + 1)}`
  return [`${before}${node.says}`, ...said.map((each) => indented + each)]
}

export const factText = (fact: Fact): string =>
  [
    `${fact.name} is ${fact.value === null ? 'missing' : JSON.stringify(fact.value)}`,
    fact.orMore ? ' or more' : '',
    fact.windowFrom === null ? '' : ` from ${fact.windowFrom}`,
    fact.windowUntil === null ? '' : ` until ${fact.windowUntil}`,
    fact.capped ? ', some left out' : '',
  ].join('')
