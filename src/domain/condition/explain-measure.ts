// Why a user has the value of a computed trait: what it is made of, and when time alone changes it.
import type { Json, JsonObject } from '../message.ts'
import type { Measure } from './condition.ts'
import { type BoundLeaf, leafTurns, leafValue } from './evaluate.ts'
import { type Asked, type Fact, measureFact, type Turn, whereFacts } from './explain.ts'
import { measureNeed } from './leaf.ts'
import { printMeasure } from './text/print.ts'

export type ExplainedMeasure = {
  /** `undefined` for a missing value. */
  readonly value: Json | undefined
  readonly turns: Turn
  /** In the text form. */
  readonly says: string
  readonly facts: readonly Fact[]
}

type AskedMeasure = Omit<Asked, 'condition'> & { readonly measure: Measure }

/** `null` when the leaf is not kept yet. `json` is the measure as it is stored. */
export const explainMeasure = (asked: AskedMeasure): ExplainedMeasure | null => {
  const { measure, json, find, facts, at } = asked
  const leaf = find(measureNeed(measure))
  if (leaf === null) return null
  return {
    value: leafValue(leaf, facts, at),
    turns: turnAfter(leaf, asked),
    says: printMeasure(json as JsonObject),
    facts: [measureFact(asked, measure, ''), ...whereFacts(asked, measure.events)],
  }
}

/** An event that leaves a window does not always change what is made of the others. */
const turnsFollowedMax = 64

const turnAfter = (leaf: BoundLeaf, { facts, at }: Pick<Asked, 'facts' | 'at'>): Turn => {
  const now = JSON.stringify(leafValue(leaf, facts, at))
  let turn = at
  for (let followed = 0; followed < turnsFollowedMax; followed++) {
    turn = leafTurns(leaf, facts, turn)
    if (turn === Number.POSITIVE_INFINITY || JSON.stringify(leafValue(leaf, facts, turn)) !== now)
      return { at: turn, isExact: true }
  }
  return { at: turn, isExact: false }
}
