// What an audience or a computed trait works out for each user, read from its stored form.
import { canonicalText, measureText } from './condition/canonical.ts'
import type { Condition, Measure, Problem } from './condition/condition.ts'
import { type Expanded, expandReferences, type References } from './condition/expand.ts'
import { type LeafNeed, leavesOf, measureNeed } from './condition/leaf.ts'
import { parseCondition, parseMeasure } from './condition/parse.ts'
import type { Audience } from './configuration.ts'

export type Definition =
  | { readonly type: 'membership'; readonly condition: Condition }
  | { readonly type: 'value'; readonly measure: Measure }

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
  return !expanded.ok || includeAnonymous
    ? expanded
    : { ok: true, json: { all: [{ identified: true }, expanded.json] } }
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

export const leavesOfDefinition = (definition: Definition): readonly LeafNeed[] =>
  definition.type === 'value' ? [measureNeed(definition.measure)] : leavesOf(definition.condition)

/** Equal for definitions that say the same: an edit that changes nothing is none. */
export const definitionText = (definition: Definition): string =>
  definition.type === 'value'
    ? `value ${measureText(definition.measure)}`
    : canonicalText(definition.condition)
