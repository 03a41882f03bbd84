// What an audience or a computed trait works out for each user, read from its stored form.
import { canonicalText, measureText } from './condition/canonical.ts'
import type { Condition, Measure, Problem } from './condition/condition.ts'
import { type LeafNeed, leavesOf, measureNeed } from './condition/leaf.ts'
import { parseCondition, parseMeasure } from './condition/parse.ts'
import type { Audience } from './configuration.ts'
import type { JsonObject } from './message.ts'

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

/** Whom the audience is about stands in its condition, so that who works it out need not know. */
export const populated = ({
  kind,
  condition,
  includeAnonymous,
}: Pick<Audience, 'kind' | 'condition' | 'includeAnonymous'>): JsonObject =>
  kind === 'trait' || includeAnonymous ? condition : { all: [{ identified: true }, condition] }

export const leavesOfDefinition = (definition: Definition): readonly LeafNeed[] =>
  definition.type === 'value' ? [measureNeed(definition.measure)] : leavesOf(definition.condition)

/** Equal for definitions that say the same: an edit that changes nothing is none. */
export const definitionText = (definition: Definition): string =>
  definition.type === 'value'
    ? `value ${measureText(definition.measure)}`
    : canonicalText(definition.condition)
