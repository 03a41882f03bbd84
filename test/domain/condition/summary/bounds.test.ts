import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Filter, Reduce, Sequence } from '../../../../src/domain/condition/condition.ts'
import { kindOf, type LeafSpec } from '../../../../src/domain/condition/leaf.ts'
import {
  distinctKind,
  modeKind,
  uniqueKind,
} from '../../../../src/domain/condition/summary/distinct.ts'
import { keyedKind } from '../../../../src/domain/condition/summary/keyed.ts'
import { measureKind } from '../../../../src/domain/condition/summary/measure.ts'
import { heldMax, sequenceKind } from '../../../../src/domain/condition/summary/sequence.ts'
import type { Window } from '../../../../src/domain/condition/window.ts'
import { foldAll, inOrder, isIn, rewritten, sceneOf, sizeOf } from './scene.ts'

const day = 86_400_000
const path = ['p']
const letters = fc.constantFrom(...'abcdefgh').map((p) => ({ p }))

test.each([
  ['distinct', distinctKind],
  ['unique', uniqueKind],
  ['mode', (measure: Parameters<typeof modeKind>[0]) => modeKind(measure, 1)],
] as const)('%s at its bound keeps the same whatever the order', (_, kindFor) => {
  fc.assert(
    fc.property(sceneOf(letters), fc.integer({ min: 1, max: 5 }), (scene, cellsMax) => {
      const kind = kindFor({ window: scene.window, path, cellsMax })
      const whole = foldAll(kind, scene.events)
      expect(whole.cells).toBeLessThanOrEqual(cellsMax)
      expect(foldAll(kind, scene.events.toReversed())).toEqual(whole)
      expect(foldAll(kind, inOrder(scene.events))).toEqual(whole)
      const [left, right] = [scene.events.slice(0, scene.cut), scene.events.slice(scene.cut)].map(
        (events) => foldAll(kind, events),
      )
      expect(kind.combine(left as typeof whole, right as typeof whole)).toEqual(whole)
    }),
    { numRuns: 500 },
  )
})

const likeCity: Filter = {
  type: 'prop',
  test: {
    path,
    comparison: { op: 'eq', ref: { type: 'trait', path: ['city'] }, foldCase: false },
  },
}
const reducers: readonly Reduce[] = [
  { type: 'count' },
  { type: 'sum', path: ['n'] },
  { type: 'last', path: ['n'] },
  { type: 'mode', path: ['n'], minFrequency: 1 },
]

test.each(reducers)(
  '%j beside a trait keeps the same at its bound whatever the order',
  (reduce) => {
    const said = fc.record({ p: fc.constantFrom(...'abcd'), n: fc.integer({ min: 1, max: 3 }) })
    fc.assert(
      fc.property(sceneOf(said), fc.integer({ min: 1, max: 5 }), (scene, cellsMax) => {
        const { window, events, cut } = scene
        const ofAllTime = { events: { name: 'a', where: null, window: null }, reduce }
        const kind = keyedKind({
          filter: likeCity,
          window,
          cellsMax,
          inner: measureKind(ofAllTime, 9),
        })
        const whole = foldAll(kind, events)
        expect(whole.cells).toBeLessThanOrEqual(cellsMax)
        expect(kind.capped?.(whole)).toBe(whole.cells === cellsMax)
        expect(foldAll(kind, events.toReversed())).toEqual(whole)
        const [left, right] = [
          foldAll(kind, events.slice(0, cut)),
          foldAll(kind, events.slice(cut)),
        ]
        expect(kind.combine(left, right)).toEqual(whole)
        expect(rewritten(kind, whole)).toEqual(whole)
      }),
      { numRuns: 300 },
    )
  },
)

test('the number of distinct values is exact up to its bound, stays there, and says so', () => {
  fc.assert(
    fc.property(sceneOf(letters), fc.integer({ min: 1, max: 5 }), (scene, cellsMax) => {
      fc.pre(scene.window?.type !== 'ago')
      const kind = distinctKind({ window: scene.window, path, cellsMax })
      const summary = foldAll(kind, scene.events)
      const at = scene.asked[0] as number
      const there = scene.events.filter(({ te }) => isIn(scene.window, te, at))
      const real = new Set(there.map(({ properties }) => JSON.stringify(properties))).size
      expect(kind.valueAt(summary, at) ?? 0).toBe(Math.min(real, cellsMax))
      if (real > cellsMax) expect(kind.capped?.(summary)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

const said = (te: number, properties = {}) => ({ te, r: te, id: `m${te}`, properties, step: 0 })

const cart: Sequence = {
  window: { type: 'last', lastMs: 7 * day, gridMs: 3_600_000 },
  settle: 'immediate',
  steps: [
    { name: 'a', where: null, then: 'did', withinMs: null, match: [] },
    { name: 'b', where: null, then: 'did_not', withinMs: day, match: [] },
  ],
}

test('a sequence holds so many events of a step, the newest, and says that others went', () => {
  const kind = sequenceKind(cart)
  const events = Array.from({ length: heldMax }, (_, index) => said(10 * day + index * 1_000))
  const full = foldAll(kind, events)
  expect(kind.capped?.(full)).toBe(false)
  const over = kind.fold(full, said(11 * day), 0)
  expect(over.lists[0]?.length).toBe(heldMax)
  expect(over.lists[0]?.[0]?.te).toBe(10 * day + 1_000)
  expect(kind.capped?.(over)).toBe(true)
  expect(rewritten(kind, over)).toEqual(over)
})

test('carts that were bought are not held, and a week later nothing is', () => {
  const kind = sequenceKind(cart)
  const added = foldAll(kind, [said(10 * day), said(10 * day + 1), said(9 * day)])
  expect(kind.valueAt(added, 11 * day)).toBe(true)
  const bought = kind.fold(added, said(10 * day + 2), 1)
  expect(bought.lists.map((list) => list.map(({ te }) => te))).toEqual([[9 * day], [10 * day + 2]])
  const later = kind.fold(bought, said(20 * day), 1)
  expect(later.lists.map((list) => list.length)).toEqual([0, 1])
})

test('a search that would take too long ends, and says so', () => {
  const step = { name: 'a', where: null, then: 'did' as const, withinMs: null }
  const kind = sequenceKind({
    window: { type: 'ago', fromMs: day, untilMs: 30 * day, gridMs: day },
    settle: 'immediate',
    steps: Array.from({ length: 8 }, (_, index) => ({
      ...step,
      match:
        index < 7
          ? []
          : Array.from({ length: 7 }, (_, earlier) => ({
              ...{ path: ['none'], op: 'eq' as const, step: earlier, of: path },
            })),
    })),
  })
  let summary = kind.empty
  for (let index = 0; index < 100; index++)
    for (let at = 0; at < 8; at++)
      summary = kind.fold(summary, said(10 * day + index * 8 + at, { p: index, none: -1 }), at)
  const start = performance.now()
  expect(kind.valueAt(summary, 12 * day)).toBe(false)
  expect(kind.capped?.(summary)).toBe(true)
  expect(performance.now() - start).toBeLessThan(10_000)
})

test('texts longer than their bound are kept by how they begin, whole characters only', () => {
  const kind = uniqueKind({ window: null, path })
  const long = `${'x'.repeat(1_023)}\u{1F600}tail`
  const summary = foldAll(kind, [said(1, { p: long }), said(2, { p: `${long}other` })])
  expect(kind.valueAt(summary, 3)).toEqual(['x'.repeat(1_023)])
  expect(rewritten(kind, summary)).toEqual(summary)
})

const last = (days: number): Window => ({ type: 'last', lastMs: days * day, gridMs: 3_600_000 })

/** Forty leaves of all kinds, as twenty audiences of a shop might have them. */
const shop = (): readonly LeafSpec[] => {
  const reducers: readonly Reduce[] = [
    { type: 'count' },
    { type: 'count' },
    ...(['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct', 'unique'] as const).map(
      (type) => ({
        type,
        path,
      }),
    ),
    { type: 'mode', path, minFrequency: 2 },
    { type: 'distinct_days', timezone: 'Europe/Dublin' },
  ]
  const measures = reducers.flatMap((reduce) =>
    [null, last(30), last(90)].map(
      (window): LeafSpec => ({
        type: 'measure',
        measure: { events: { name: 'e', where: null, window }, reduce },
      }),
    ),
  )
  const sequences = [7, 14, 30, 60].map(
    (days): LeafSpec => ({ type: 'sequence', sequence: { ...cart, window: last(days) } }),
  )
  return [...measures, ...sequences]
}

test('forty leaves of mixed kinds take less than 2 kB of an ordinary user', () => {
  const leaves = shop()
  expect(leaves.length).toBe(40)
  const id = (index: number) => `0b8f3a52-7c1d-4e6f-9a2b-${String(index).padStart(12, '0')}`
  const bytes = leaves.map((spec) => {
    const kind = kindOf(spec, 4)
    let summary = kind.empty
    for (let index = 0; index < 12; index++) {
      const te = 1_795_000_000_000 + index * 5 * day + index * 7_777_777
      const properties = { p: (999 + index * 350) / 100 }
      const seen = { te, r: te + 1_500, id: id(index), properties }
      summary = kind.fold(summary, seen, spec.type === 'sequence' ? index % 2 : 0)
    }
    return sizeOf(kind, summary)
  })
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2_048)
})
