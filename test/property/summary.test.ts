import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type CountSummary,
  combineCounts,
  countAt,
  emptyCount,
  foldCount,
  reaches,
  turningBucket,
} from '../../src/domain/condition/summary/count.ts'
import { bucketOf, effectiveTime, expiryOf, tailOf } from '../../src/domain/condition/window.ts'

const times = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 30 })
const scene = fc.record({
  left: times,
  right: times,
  at: fc.integer({ min: 0, max: 500 }),
  extra: fc.integer({ min: 0, max: 3 }),
  window: fc.option(
    fc
      .tuple(fc.constantFrom(1, 10, 60), fc.integer({ min: 1, max: 6 }))
      .map(([gridMs, steps]) => ({ type: 'last' as const, gridMs, lastMs: gridMs * steps })),
    { nil: null },
  ),
  threshold: fc.record({
    op: fc.constantFrom('gte', 'gt', 'eq', 'lte', 'lt'),
    value: fc.integer({ min: 0, max: 4 }),
  }),
})

type Scene = typeof scene extends fc.Arbitrary<infer S> ? S : never

const fold = (list: readonly number[], { window, threshold, extra }: Scene): CountSummary =>
  list.reduce(
    (summary, te) =>
      foldCount(summary, bucketOf(window, te) as number, threshold.value + 1 + extra),
    emptyCount,
  )

/** Straight from the definition: floor(te/g) > floor(T/g) − W/g. */
const naive = (list: readonly number[], { window, threshold }: Scene, at: number): boolean => {
  const inside = list.filter(
    (te) =>
      window === null ||
      Math.floor(te / window.gridMs) >
        Math.floor(at / window.gridMs) - window.lastMs / window.gridMs,
  ).length
  return {
    gte: inside >= threshold.value,
    gt: inside > threshold.value,
    eq: inside === threshold.value,
    lte: inside <= threshold.value,
    lt: inside < threshold.value,
  }[threshold.op]
}

const engine = (summary: CountSummary, { window, threshold }: Scene, at: number): boolean =>
  reaches(threshold, countAt(summary, window, at))

const runs = { numRuns: 3_000 }

test('P3: a summary folded in any order decides as counting the events does', () => {
  fc.assert(
    fc.property(scene, (s) => {
      const all = [...s.left, ...s.right]
      expect(engine(fold(all, s), s, s.at)).toBe(naive(all, s, s.at))
      expect(fold(all.toReversed(), s)).toEqual(fold(all, s))
    }),
    runs,
  )
})

test('P7: summaries combine to what folding all events gives, either way round', () => {
  fc.assert(
    fc.property(scene, (s) => {
      const keep = s.threshold.value + 1 + s.extra
      const [left, right] = [fold(s.left, s), fold(s.right, s)]
      const together = fold([...s.left, ...s.right], s)
      expect(combineCounts(left, right, keep)).toEqual(together)
      expect(combineCounts(right, left, keep)).toEqual(together)
      expect(combineCounts(left, emptyCount, keep)).toEqual(left)
    }),
    runs,
  )
})

test('P8: the timer is the first later instant at which the comparison turns over', () => {
  fc.assert(
    fc.property(scene, (s) => {
      const all = [...s.left, ...s.right]
      const summary = fold(all, s)
      const bucket = turningBucket(summary, tailOf(s.window, s.at), s.threshold)
      const due = bucket === null ? Number.POSITIVE_INFINITY : expiryOf(s.window, bucket)
      const now = naive(all, s, s.at)
      let first = Number.POSITIVE_INFINITY
      for (let at = s.at + 1; at < 1_000; at++)
        if (naive(all, s, at) !== now) {
          first = at
          break
        }
      expect(due).toBe(first)
    }),
    { numRuns: 1_000 },
  )
})

test('P11: a summary holds no more than the events it must know, and their bucket', () => {
  fc.assert(
    fc.property(scene, (s) => {
      const summary = fold([...s.left, ...s.right], s)
      expect(summary.buckets.length).toBeLessThanOrEqual(s.threshold.value + 1 + s.extra)
      expect(summary.buckets).toEqual(summary.buckets.toSorted((a, b) => b - a))
    }),
    runs,
  )
})

test('an event is never in the future and never before 1970', () => {
  expect(effectiveTime(5, 3)).toBe(3)
  expect(effectiveTime(2, 3)).toBe(2)
  expect(effectiveTime(-1, 3)).toBe(3)
  expect(effectiveTime(Number.NaN, 3)).toBe(3)
})
