// What holds of any conditions whatever a history was, without asking what they say.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Condition } from '../support/language.ts'
import { anyCondition, type Definition, eventNames, spans } from './audience-definitions.ts'
import { advanced } from './audience-history.ts'
import { asCall, engineOf, type OneScene, oneScene } from './audience-one.ts'

const condition = anyCondition({ traits: [], audiences: 0 })
const counted = fc.record({
  name: fc.constantFrom(...eventNames),
  span: fc.nat({ max: spans.length - 2 }),
  value: fc.integer({ min: 1, max: 4 }),
})

/** Whether the user is in it after each step. */
const membersOf = (asked: Condition, { start, isNamed, steps }: OneScene): readonly boolean[] => {
  const whole = { key: 'a', kind: 'audience', timezone: 'UTC', includeAnonymous: true } as const
  const definition: Definition = { ...whole, condition: asked }
  const engine = engineOf(definition, [definition], isNamed)
  const times: number[] = []
  let now = start
  return steps.map((step) => {
    now = advanced(now, step, times)
    const calls = step.said.map((said, row) => asCall(said, now, times.length + row))
    for (const call of calls) engine.take(call)
    // In an order of their own: the clock does not go by the one in which they came.
    times.push(...calls.map(({ timestamp, receivedAt }) => Math.min(timestamp, receivedAt)).sort())
    return engine.look(now).answer === true
  })
}

const isWithin = (inner: readonly boolean[], outer: readonly boolean[]) =>
  expect(inner.map((member, at) => !member || outer[at])).toEqual(inner.map(() => true))

const runs = { numRuns: 100 }

/** Some order of the calls of each step, which are received at one instant. */
const shuffled = ({ steps }: OneScene): fc.Arbitrary<OneScene['steps']> =>
  fc.tuple(
    ...steps.map((step) =>
      fc
        .shuffledSubarray([...step.said], { minLength: step.said.length })
        .map((said) => ({ ...step, said })),
    ),
  )

test('P3: calls of one sync interval give the same in whatever order they arrive', () => {
  const named = ({ steps, ...scene }: OneScene): OneScene => ({
    ...scene,
    steps: steps.map((step, at) => ({
      ...step,
      said: step.said.map((said, row) => ({ ...said, messageId: `m${at}-${row}` })),
    })),
  })
  const twice = fc
    .tuple(condition, oneScene.map(named))
    .chain(([it, scene]) => fc.tuple(fc.constant(it), fc.constant(scene), shuffled(scene)))
  fc.assert(
    fc.property(twice, ([it, scene, steps]) => {
      expect(membersOf(it, { ...scene, steps })).toEqual(membersOf(it, scene))
    }),
    runs,
  )
})

test('M1: everyone is in a condition or not in it, and nobody is both', () => {
  fc.assert(
    fc.property(condition, oneScene, (it, scene) => {
      expect(membersOf({ any: [it, { not: it }] }, scene)).not.toContain(false)
      expect(membersOf({ all: [it, { not: it }] }, scene)).not.toContain(true)
    }),
    runs,
  )
})

test('M2: one more condition never adds anyone, one more alternative never loses anyone', () => {
  fc.assert(
    fc.property(condition, condition, oneScene, (left, right, scene) => {
      const alone = membersOf(left, scene)
      isWithin(membersOf({ all: [left, right] }, scene), alone)
      isWithin(alone, membersOf({ any: [left, right] }, scene))
    }),
    runs,
  )
})

const atLeast = (name: string, span: number, value: number): Condition => ({
  event: { name, window: { last: spans[span] as string } },
  count: { op: 'gte', value },
})

test('M3: a wider window never loses anyone of "at least", a higher number never gains anyone', () => {
  fc.assert(
    fc.property(counted, oneScene, ({ name, span, value }, scene) => {
      const members = membersOf(atLeast(name, span, value), scene)
      isWithin(members, membersOf(atLeast(name, span + 1, value), scene))
      isWithin(membersOf(atLeast(name, span, value + 1), scene), members)
    }),
    runs,
  )
})
