import fc from 'fast-check'
import { expect, test } from 'vitest'
import { orderOperators, type Sequence, type Step } from '../../src/domain/condition/condition.ts'
import { sequenceKind } from '../../src/domain/condition/summary/sequence.ts'
import type { Json } from '../../src/domain/message.ts'
import {
  type Event,
  edgesAfter,
  foldAll,
  inOrder,
  isIn,
  rewritten,
  type Scene,
  sceneOf,
} from '../domain/condition/summary/scene.ts'

const value = fc.constantFrom<Json>(1, 2, 1, 2, '1', 'a', null, [1], true)
const properties = fc.record({ p: value, q: value }, { requiredKeys: [] }) as fc.Arbitrary<Json>
const path = fc.constantFrom('p', 'q').map((key) => [key])

type Shape = Pick<Sequence, 'settle' | 'steps'>

const shapeOf = (count: number): fc.Arbitrary<Shape> => {
  const step = (index: number) => {
    const isLast = index === count - 1
    const matches = fc.record({
      path,
      op: fc.constantFrom('eq' as const, 'eq' as const, ...orderOperators),
      step: fc.integer({ min: 0, max: Math.max(0, index - 1) }),
      of: path,
    })
    return fc.record({
      name: fc.constant('e'),
      where: fc.constant(null),
      then: isLast
        ? fc.constantFrom('did' as const, 'did_not' as const)
        : fc.constant('did' as const),
      withinMs:
        index === 0
          ? fc.constant(null)
          : fc.constantFrom(null, 1, 10, 20, 60, 60, 120, 300, 86_400_000),
      match: index === 0 ? fc.constant([]) : fc.array(matches, { maxLength: index === 1 ? 1 : 2 }),
    })
  }
  return fc.record({
    settle: fc.constantFrom('immediate' as const, 'after_deadline' as const),
    steps: fc.tuple(...Array.from({ length: count }, (_, index) => step(index))),
  })
}

const any = fc.integer({ min: 2, max: 4 }).chain((steps) =>
  fc.record({
    shape: shapeOf(steps),
    scene: sceneOf(properties, { steps, eventsMax: steps * 5, instantMax: 20 }),
  }),
)

/** All steps of one cart, say: later ones are compared with the first, over those between. */
const ofOneKey = fc
  .tuple(fc.integer({ min: 3, max: 4 }), fc.constantFrom('did' as const, 'did_not' as const))
  .chain(([steps, then]) => {
    const match = [{ path: ['p'], op: 'eq' as const, step: 0, of: ['p'] }]
    const later = fc.record({
      ...{ name: fc.constant('e'), where: fc.constant(null), then: fc.constant('did' as const) },
      withinMs: fc.constantFrom(null, 60, 120),
      match: fc.constantFrom([], match),
    })
    const first = { name: 'e', where: null, then: 'did' as const, withinMs: null, match: [] }
    return fc.record({
      shape: fc.array(later, { minLength: steps - 1, maxLength: steps - 1 }).map((list): Shape => {
        const last = { ...list[steps - 2], then, match }
        return { settle: 'immediate', steps: [first, ...list.slice(0, -1), last as Step] }
      }),
      scene: sceneOf(
        fc.constantFrom(1, 2).map((p): Json => ({ p })),
        { steps, eventsMax: steps * 4, instantMax: 20 },
      ),
    })
  })

const both = fc.oneof({ weight: 3, arbitrary: any }, { weight: 1, arbitrary: ofOneKey })

const isScalar = (it: Json | undefined) => it !== undefined && it !== null && typeof it !== 'object'
const numberOf = (it: Json) => (typeof it === 'number' ? it : it === '1' ? 1 : null)

/** The table of coercions, for the few values there are. */
const agrees = (left: Json | undefined, op: string, right: Json | undefined): boolean => {
  if (left === undefined || left === null || !isScalar(right)) return false
  const isSame =
    typeof right === 'number'
      ? numberOf(left) === right
      : typeof left !== 'object' && typeof left !== 'number' && String(left) === String(right)
  if (op === 'eq') return isSame
  if (op === 'neq') return !isSame
  const [a, b] = [left, right as Json].map((it) =>
    typeof left === 'string' && typeof right === 'string' ? it : numberOf(it),
  )
  if (a === null || a === undefined || b === null || b === undefined) return false
  return { gt: a > b, gte: a >= b, lt: a < b, lte: a <= b }[op] === true
}

const propertyOf = ({ properties }: Event, [key]: readonly string[]) =>
  (properties as { readonly [key: string]: Json })[key as string]

/** Tries every chain there is. */
const naive = ({ settle, steps }: Shape, { window, events }: Scene, at: number): boolean => {
  const goesOn = (chain: readonly Event[]): boolean => {
    const index = chain.length
    const step = steps[index]
    if (step === undefined) return true
    const before = chain[index - 1] as Event
    const deadline = before.te + (step.withinMs ?? Number.POSITIVE_INFINITY)
    const next = events.filter(
      (event) =>
        event.step === index &&
        event.te > before.te &&
        event.te <= deadline &&
        step.match.every(({ path, op, step: earlier, of }) =>
          agrees(propertyOf(event, path), op, propertyOf(chain[earlier] as Event, of)),
        ),
    )
    if (step.then === 'did_not')
      return next.length === 0 && (settle === 'immediate' || deadline <= at)
    return next.some((event) => goesOn([...chain, event]))
  }
  return events.some((event) => event.step === 0 && isIn(window, event.te, at) && goesOn([event]))
}

const kindFor = (shape: Shape, { window }: Scene) => sequenceKind({ ...shape, window })

test('a sequence is found in events of any order as trying every chain finds it', () => {
  fc.assert(
    fc.property(both, ({ shape, scene }) => {
      const kind = kindFor(shape, scene)
      for (const order of [scene.events, scene.events.toReversed(), inOrder(scene.events)]) {
        const summary = foldAll(kind, order)
        for (const at of scene.asked)
          expect(kind.valueAt(summary, at)).toBe(naive(shape, scene, at))
        expect(kind.capped?.(summary)).toBe(false)
      }
    }),
    { numRuns: 1_200 },
  )
})

test('P3 P7: what is held of a sequence depends neither on order, nor on cuts, nor on being kept', () => {
  fc.assert(
    fc.property(both, ({ shape, scene }) => {
      const kind = kindFor(shape, scene)
      const whole = foldAll(kind, scene.events)
      expect(foldAll(kind, scene.events.toReversed())).toEqual(whole)
      expect(rewritten(kind, whole)).toEqual(whole)
      const [head, tail] = [scene.events.slice(0, scene.cut), scene.events.slice(scene.cut)]
      const [left, right] = [foldAll(kind, head), foldAll(kind, tail)]
      expect(kind.combine(left, right)).toEqual(whole)
      expect(kind.combine(right, left)).toEqual(whole)
      expect(foldAll(kind, tail, rewritten(kind, left))).toEqual(whole)
    }),
    { numRuns: 500 },
  )
})

test('the instant a sequence names is the first at which time alone changes it', () => {
  fc.assert(
    fc.property(both, ({ shape, scene }) => {
      const kind = kindFor(shape, scene)
      const summary = foldAll(kind, scene.events)
      const at = scene.asked[0] as number
      const now = naive(shape, scene, at)
      const due = kind.nextChange(summary, at)
      expect(due).toBeGreaterThan(at)
      const until = scene.window?.type === 'calendar' ? at + 8 * 86_400_000 : at + 800
      for (const edge of edgesAfter(scene, at, Math.min(due, until)))
        expect(naive(shape, scene, edge)).toBe(now)
      if (due !== Number.POSITIVE_INFINITY) expect(naive(shape, scene, due)).toBe(!now)
    }),
    { numRuns: 200 },
  )
})
