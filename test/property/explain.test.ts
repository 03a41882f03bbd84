// What explain says of a condition is what the engine decides by, and its instants are those it turns at.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bind, type Facts, holds } from '../../src/domain/condition/evaluate.ts'
import { type Explained, explain } from '../../src/domain/condition/explain.ts'
import { kindOf, type LeafNeed, leavesOf } from '../../src/domain/condition/leaf.ts'
import { parseCondition } from '../../src/domain/condition/parse.ts'
import type { Summary } from '../../src/domain/condition/summary/kind.ts'
import type { JsonObject } from '../../src/domain/message.ts'
import { condition } from './explain-scene.ts'

const hour = 3_600_000
const day = 24 * hour
const now = Date.UTC(2026, 2, 29, 0, 30)

const happened = fc.record({
  name: fc.constantFrom('Ordered', 'Seen'),
  ago: fc.oneof(
    fc.constantFrom(0, 1, hour, hour + 1, 2 * hour, day, 2 * day, 2 * day + 1, 3 * day),
    fc.nat(4 * day),
  ),
  p: fc.constantFrom(1, 2, 5, '3', null),
})

const person = fc.record({
  identified: fc.boolean(),
  traits: fc.record({
    plan: fc.constantFrom('pro', 'free', null),
    ends: fc.constantFrom('2026-03-30', '2026-04-03T12:00:00Z', 'never'),
    limit: fc.constantFrom(1, 2, '3', true),
    items: fc.constantFrom([{ sku: 'a' }], []),
  }),
  events: fc.array(happened, { maxLength: 12 }),
})

const known = (needs: readonly LeafNeed[]) => {
  const ids = new Map<string, number>()
  const keeps = new Map<string, number>()
  for (const { hash, keep } of needs) {
    if (!ids.has(hash)) ids.set(hash, ids.size)
    keeps.set(hash, Math.max(keep, keeps.get(hash) ?? 0))
  }
  return ({ hash, spec }: LeafNeed) => ({
    id: ids.get(hash) as number,
    kind: kindOf(spec, keeps.get(hash) as number),
  })
}

const leavesIn = (explained: Explained): readonly Explained[] =>
  'of' in explained ? explained.of.flatMap(leavesIn) : [explained]

const evaluated = (explained: Explained): boolean => {
  if (!('of' in explained)) return explained.holds
  const of = explained.of.map(evaluated)
  if (explained.type === 'not') return of[0] === false
  return explained.type === 'all' ? of.every(Boolean) : of.some(Boolean)
}

type Happened = typeof happened extends fc.Arbitrary<infer T> ? T : never
type Find = ReturnType<typeof known>

const folded = (need: LeafNeed, events: readonly Happened[], find: Find): Summary => {
  const { kind } = find(need)
  const of = need.spec.type === 'sequence' ? need.spec.sequence.steps : [need.spec.measure.events]
  let summary = kind.empty
  for (const [at, { name, ago, p }] of events.entries()) {
    const seen = { te: now - ago, r: now - ago, id: `${at}`, properties: { p } }
    for (const [step, each] of of.entries())
      if (each.name === name) summary = kind.fold(summary, seen, step)
  }
  return summary
}

const sceneOf = (json: JsonObject, of: typeof person extends fc.Arbitrary<infer T> ? T : never) => {
  const parsed = parseCondition(json)
  if (!parsed.ok) throw new Error(parsed.problems[0]?.message)
  const needs = leavesOf(parsed.condition)
  const find = known(needs)
  const summaries = new Map(needs.map((need) => [find(need).id, folded(need, of.events, find)]))
  const facts: Facts = {
    identified: of.identified,
    traits: () => of.traits as JsonObject,
    summary: ({ id }) => summaries.get(id),
  }
  const bound = bind(parsed.condition, find)
  if (bound === null) throw new Error('a leaf is not found')
  return { condition: parsed.condition, find, facts, bound }
}

test('P14: the tree evaluates to the bit, and the bit turns just when it says', () => {
  fc.assert(
    fc.property(condition, person, fc.nat(3 * day), (json, of, later) => {
      const { bound, facts, ...rest } = sceneOf(json, of)
      const at = now + later
      const found = explain({ json, facts, at, ...rest })
      if (found === null) throw new Error('nothing is explained')
      expect(found.holds).toBe(holds(bound, facts, at))
      expect(evaluated(found)).toBe(found.holds)
      for (const each of leavesIn(found))
        expect('takes' in each && each.takes === null).toBe(each.holds)
      const { at: turns, isExact } = found.turns
      const before = Math.max(at, Math.min(turns - 1, at + 400 * day))
      for (const instant of [at + Math.floor((before - at) / 2), before])
        expect(holds(bound, facts, instant)).toBe(found.holds)
      const isTurn = isExact && turns !== Number.POSITIVE_INFINITY
      expect(holds(bound, facts, isTurn ? turns : at)).toBe(found.holds !== isTurn)
    }),
    { numRuns: 2_000 },
  )
})
