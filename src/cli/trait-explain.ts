// `millrace trait explain`: what a user's value of a computed trait is made of.
import { type Fact, factText, type Turning, turning } from './audience-explain.ts'
import { type Ask, failing, print, theOne } from './client.ts'
import { type Call, flag, text } from './command.ts'
import { loadSynced } from './synced.ts'

type Explanation = Turning & {
  readonly at: string
  readonly value: unknown
  readonly recorded: unknown
  readonly synced: boolean
  readonly says: string
  readonly facts: readonly Fact[]
}

export const explainTraitUsage =
  'explain NAME USER [--anonymous] [--at 2026-12-24T08:00:00Z] [--workspace NAME]'

export const explainTrait = async (call: Call, ask: Ask): Promise<number> => {
  const [, name, user] = call.positionals
  if (name === undefined || user === undefined)
    throw failing(['say "explain NAME USER": the computed trait, and a user id'], 2)
  const shape = { path: '/admin/v1/traits', plural: 'traits' }
  const { id } = theOne(await loadSynced(call, ask, shape), 'computed trait', name)
  const at = text(call, 'at')
  const query = new URLSearchParams({
    [flag(call, 'anonymous') ? 'anonymousId' : 'userId']: user,
    ...(at === null ? {} : { at }),
  })
  const found = await ask<Explanation>({ path: `${shape.path}/${id}/explain?${query}` })
  print(call, found, [
    ['as of', found.at],
    ['value', valueText(found.value)],
    ['changes', turning(found) || 'not by time alone'],
    ['recorded', valueText(found.recorded)],
    ['told', found.synced ? 'destinations know of one' : 'destinations know of none'],
  ])
  if (flag(call, 'json')) return 0
  call.terminal.out('')
  call.terminal.out(found.says)
  for (const fact of found.facts) call.terminal.out(`    ${factText(fact)}`)
  return 0
}

const valueText = (value: unknown): string => (value === null ? 'none' : JSON.stringify(value))
