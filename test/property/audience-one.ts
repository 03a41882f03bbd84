// One person's calls through the pure engine, with its timer, beside the naive evaluator.
import fc from 'fast-check'
import { expect } from 'vitest'
import {
  admits,
  type BoundLeaf,
  bind,
  type Facts,
  holds,
  leafTurns,
  leafValue,
} from '../../src/domain/condition/evaluate.ts'
import { feedsOf, kindOf, type LeafNeed, measureNeed } from '../../src/domain/condition/leaf.ts'
import type { Summary } from '../../src/domain/condition/summary/kind.ts'
import { nextChange } from '../../src/domain/condition/turn.ts'
import { effectiveTime } from '../../src/domain/condition/window.ts'
import {
  closedCondition,
  conditionOf,
  leavesOfDefinition,
  parseDefinition,
} from '../../src/domain/definition.ts'
import type { Json, JsonObject } from '../../src/domain/message.ts'
import { type Traits, traitValues, writeTraits } from '../../src/domain/traits.ts'
import { answers } from '../oracle/oracle.ts'
import { audience } from '../project/rig.ts'
import type { Call } from '../support/language.ts'
import { type Definition, someDefinitions } from './audience-definitions.ts'
import { advanced, type Said, saidByOne, someSteps, starts } from './audience-history.ts'

export const oneScene = fc.record({
  start: fc.constantFrom(...starts),
  isNamed: fc.boolean(),
  definitions: someDefinitions(2, 2),
  steps: someSteps(saidByOne),
})
export type OneScene = typeof oneScene extends fc.Arbitrary<infer S> ? S : never

/** What the product stores for a definition. */
const stored = (definition: Definition, all: readonly Definition[]) => {
  const others = new Map(
    all.map((it, at) => [it.key, audience(at + 1, it.condition, { ...it } as object)] as const),
  )
  const whole = others.get(definition.key) as ReturnType<typeof audience>
  const closed = closedCondition(whole, others)
  if (!closed.ok) throw new Error(JSON.stringify(closed.problems))
  const parsed = parseDefinition({ ...whole, condition: closed.json })
  if (!parsed.ok) throw new Error(JSON.stringify([parsed.problems, closed.json]))
  return parsed.definition
}

/** A user with one audience or computed trait: folds, and looks again when a timer runs out. */
export const engineOf = (definition: Definition, all: readonly Definition[], isNamed: boolean) => {
  const found = stored(definition, all)
  const leaves = new Map<string, BoundLeaf & { readonly need: LeafNeed }>()
  for (const need of leavesOfDefinition(found)) {
    const held = leaves.get(need.hash)
    const keep = Math.max(need.keep, held?.need.keep ?? 0)
    const kind = kindOf(need.spec, keep)
    leaves.set(need.hash, { id: held?.id ?? leaves.size, kind, need: { ...need, keep } })
  }
  const find = ({ hash }: LeafNeed) => leaves.get(hash) ?? null
  const summaries = new Map<number, Summary>()
  let traits: Traits = new Map()
  const facts: Facts = {
    identified: isNamed,
    traits: () => traitValues(traits),
    summary: ({ id }) => summaries.get(id),
  }
  const look = (at: number): { readonly answer: Json | undefined; readonly due: number } => {
    if (found.type === 'value') {
      const leaf = find(measureNeed(found.measure)) as BoundLeaf
      return { answer: leafValue(leaf, facts, at), due: leafTurns(leaf, facts, at) }
    }
    const bound = bind(conditionOf(found), find)
    if (bound === null) throw new Error('a leaf has no id')
    return { answer: holds(bound, facts, at) || undefined, due: nextChange(bound, facts, at) }
  }
  return {
    look,
    take: (call: Call) => {
      const stamp = {
        te: effectiveTime(call.timestamp, call.receivedAt),
        r: call.receivedAt,
        id: call.messageId,
      }
      if (call.type === 'identify') traits = writeTraits(traits, call.traits as JsonObject, stamp)
      else
        for (const { id, kind, need } of leaves.values())
          for (const { event, where, step } of feedsOf(need.spec)) {
            const properties = call.properties as Json
            if (event !== call.event || (where !== null && !admits(where, properties))) continue
            summaries.set(
              id,
              kind.fold(summaries.get(id) ?? kind.empty, { ...stamp, properties }, step),
            )
          }
    },
  }
}

export const asCall = ({ ago, ...said }: Said, receivedAt: number, row: number): Call => {
  const none = { previousId: null, event: null, properties: {}, traits: {} }
  const call = {
    type: 'track',
    userId: null,
    anonymousId: null,
    ...none,
    ...said,
  } as unknown as Call
  return {
    ...call,
    messageId: call.messageId ?? `m${row}`,
    timestamp: receivedAt - ago,
    receivedAt,
  }
}

/** Throws at the first instant at which the two differ. */
export const playOne = (scene: OneScene): void => {
  for (const definition of scene.definitions) playDefinition(definition, scene)
}

/** Also at the first timers that run out on the way, and the instant before each. */
export const playDefinition = (
  definition: Definition,
  { start, isNamed, definitions, steps }: OneScene,
) => {
  const engine = engineOf(definition, definitions, isNamed)
  const log: Call[] = []
  let now = start
  let known = engine.look(now)
  const check = (at: number) => {
    now = at
    if (log.length === 0) return
    if (at >= known.due) known = engine.look(at)
    const { named, nameless } = answers(log, { ...definition, others: definitions }, at)
    const expected = isNamed ? named.get('u') : nameless[0]
    const instant = new Date(at).toISOString()
    expect([instant, known.answer]).toEqual([instant, expected])
  }
  for (const step of steps) {
    const to = advanced(now, step, log.map(timeOf))
    // Timers that run out on the way, and the instant before each.
    for (let tried = 0; tried < timersTried && log.length > 0 && known.due <= to; tried++) {
      check(Math.max(now, known.due - 1))
      check(known.due)
    }
    check(to)
    for (const said of step.said) {
      const who = isNamed ? { userId: 'u' } : { anonymousId: 'v' }
      log.push(asCall({ ...said, ...who }, now, log.length))
      engine.take(log.at(-1) as Call)
    }
    known = engine.look(now)
    check(now)
  }
}

const timersTried = 6
const timeOf = ({ timestamp, receivedAt }: Call) => Math.min(timestamp, receivedAt)
