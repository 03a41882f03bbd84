// What an audience or a computed trait works out for each user, read from its stored form.
import { canonicalText, measureText } from './condition/canonical.ts'
import type { Condition, Measure, Problem } from './condition/condition.ts'
import { type Expanded, expandReferences, type References } from './condition/expand.ts'
import { type LeafNeed, leavesOf, measureNeed } from './condition/leaf.ts'
import { parseCondition, parseMeasure } from './condition/parse.ts'
import {
  isAboutAccounts,
  parseUsers,
  type UsersCondition,
  withoutAnonymous,
} from './condition/users.ts'
import type { Audience } from './configuration.ts'

export type Definition =
  | { readonly type: 'membership'; readonly condition: Condition }
  | { readonly type: 'value'; readonly measure: Measure }
  /** Members are the users of the accounts that pass. */
  | { readonly type: 'account'; readonly users: UsersCondition }

export type ParsedDefinition =
  | { readonly ok: true; readonly definition: Definition }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Of a closed condition, one without references. */
export const parseDefinition = ({
  kind,
  condition,
  timezone,
}: Pick<Audience, 'kind' | 'condition' | 'timezone'>): ParsedDefinition => {
  if (kind === 'trait') {
    const parsed = parseMeasure(condition, { timezone })
    return parsed.ok ? { ok: true, definition: { type: 'value', measure: parsed.measure } } : parsed
  }
  if (isAboutAccounts(condition)) {
    const parsed = parseUsers(condition, { timezone })
    return parsed.ok ? { ok: true, definition: { type: 'account', users: parsed.users } } : parsed
  }
  const parsed = parseCondition(condition, { timezone })
  return parsed.ok
    ? { ok: true, definition: { type: 'membership', condition: parsed.condition } }
    : parsed
}

type Whole = Pick<Audience, 'kind' | 'key' | 'condition' | 'includeAnonymous'>

/**
 * What is stored and worked out: without references, and with whom the audience is about in it. `others`
 * are those of its workspace, by key.
 */
export const closedCondition = (
  { kind, key, condition, includeAnonymous }: Whole,
  others: ReadonlyMap<string, Audience>,
): Expanded => {
  if (kind === 'trait') return { ok: true, json: condition }
  const expanded = expandReferences(condition, referencesTo(others), key)
  if (!expanded.ok || includeAnonymous) return expanded
  const { json } = expanded
  return {
    ok: true,
    json: isAboutAccounts(json) ? withoutAnonymous(json) : { all: [{ identified: true }, json] },
  }
}

const referencesTo = (others: ReadonlyMap<string, Audience>): References => ({
  audience: (key) => {
    const found = others.get(key)
    return found?.kind === 'audience' ? { ...found, where: found.condition } : null
  },
  computed: (key) => {
    const found = others.get(key)
    return found?.kind === 'trait' ? { ...found, definition: found.condition } : null
  },
})

/** The audiences and computed traits of one workspace, by key. */
export const byKey = (
  audiences: Iterable<Audience>,
  workspaceId: number,
): ReadonlyMap<string, Audience> =>
  new Map(
    [...audiences].flatMap((audience) =>
      audience.workspaceId === workspaceId ? [[audience.key, audience] as const] : [],
    ),
  )

/** What is asked of each user, whatever follows from it; a computed trait asks nothing. */
export const conditionOf = (
  definition: Exclude<Definition, { readonly type: 'value' }>,
): Condition => (definition.type === 'account' ? definition.users.where : definition.condition)

export const leavesOfDefinition = (definition: Definition): readonly LeafNeed[] =>
  definition.type === 'value'
    ? [measureNeed(definition.measure)]
    : leavesOf(conditionOf(definition))

/** Equal for definitions that say the same: an edit that changes nothing is none. */
export const definitionText = (definition: Definition): string => {
  switch (definition.type) {
    case 'value':
      return `value ${measureText(definition.measure)}`
    case 'membership':
      return canonicalText(definition.condition)
    case 'account': {
      const { quantifier, identified, where } = definition.users
      return `${quantifier} ${identified ? 'identified ' : ''}users ${canonicalText(where)}`
    }
  }
}
