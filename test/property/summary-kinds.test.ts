import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Reduce } from '../../src/domain/condition/condition.ts'
import { measureKind } from '../../src/domain/condition/summary/measure.ts'
import type { Json } from '../../src/domain/message.ts'
import {
  dayOf,
  type Event,
  edgesAfter,
  foldAll,
  inOrder,
  isIn,
  rewritten,
  type Scene,
  sceneOf,
} from '../domain/condition/summary/scene.ts'

const path = ['p']
const keepAll = 2_147_483_647

const scalar = fc.constantFrom<Json>(
  ...[1, 2, 3, -1, 0, -0, 0.1, 0.2, 19.99, 5, 5.5, 1e-7, 1e21, -1e21, 12345678901.125],
  ...['5', '5.0', '0.1', '-3', '', 'a', 'b', 'é', 'e\u0301', '\u{1F600}', '\uFB00', '1e3', ' 5'],
  ...[true, false, 'true', 'false', null],
)
const value = fc.oneof(
  { weight: 8, arbitrary: scalar },
  fc.array(scalar, { maxLength: 3 }),
  fc.constant({ nested: 1 }),
)
const properties = fc.oneof(
  { weight: 8, arbitrary: value.map((p): Json => ({ p })) },
  fc.constant<Json>({}),
)

const decimal = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/

/** JSON can write a negative zero; there is one zero here. */
const found = ({ properties }: Event): Json | undefined => {
  const { p } = properties as { readonly p?: Json }
  return p === 0 ? 0 : p
}
const isScalar = (it: Json | undefined) => it !== undefined && it !== null && typeof it !== 'object'

/** Digits after the point, written out by hand. */
const millionths = (it: Json | undefined): bigint[] => {
  if (typeof it !== 'number' && !(typeof it === 'string' && decimal.test(it))) return []
  const text = typeof it === 'number' ? plain(it) : it
  const [, sign, whole = '', fraction = ''] = /^(-?)([0-9]+)\.?([0-9]*)$/.exec(text) ?? []
  const digits = BigInt(whole + fraction.slice(0, 6).padEnd(6, '0'))
  const rounded = digits + ((fraction[6] ?? '0') >= '5' ? 1n : 0n)
  return [sign === '-' ? -rounded : rounded]
}

const plain = (it: number): string => {
  if (Math.abs(it) === 1e21) return `${it < 0 ? '-' : ''}1${'0'.repeat(21)}`
  return it === 1e-7 ? '0.0000001' : String(it)
}

/** Nearest number to an exact fraction, by the shortest way: text with more digits than any number has. */
const nearest = (sum: bigint, count: bigint): number => {
  const scale = 10n ** 60n
  const digits = ((sum < 0n ? -sum : sum) * scale) / (count * 1_000_000n)
  return (sum < 0n ? -1 : 1) * Number(`${digits}e-60`) + 0
}

const byCodePoint = (left: string, right: string): number => {
  const [a, b] = [left, right].map((text) => [...text].map((it) => it.codePointAt(0) as number))
  for (let at = 0; at < Math.min(a?.length ?? 0, b?.length ?? 0); at++)
    if (a?.[at] !== b?.[at]) return (a?.[at] ?? 0) - (b?.[at] ?? 0)
  return (a?.length ?? 0) - (b?.length ?? 0)
}

const naive = (reduce: Reduce, scene: Scene, at: number): Json | undefined => {
  const events = inOrder(scene.events).filter(({ te }) => isIn(scene.window, te, at))
  const scalars = events.map(found).filter(isScalar) as (string | number | boolean)[]
  const exact = events.flatMap((event) => millionths(found(event)))
  const numbers = events
    .map(found)
    .filter((it) => millionths(it).length > 0)
    .map(Number)
  const texts = events
    .flatMap((event) => [found(event)].flat() as Json[])
    .filter(isScalar)
    .map((it) => String(it).normalize('NFC'))
  const distinct = [...new Set(texts)].sort(byCodePoint)
  const count = (text: string) => texts.filter((it) => it === text).length
  switch (reduce.type) {
    case 'count':
      return events.length
    case 'sum':
      return nearest(
        exact.reduce((sum, it) => sum + it, 0n),
        1n,
      )
    case 'avg':
      if (exact.length === 0) return undefined
      return nearest(
        exact.reduce((sum, it) => sum + it, 0n),
        BigInt(exact.length),
      )
    case 'min':
      return numbers.length === 0 ? undefined : Math.min(...numbers) + 0
    case 'max':
      return numbers.length === 0 ? undefined : Math.max(...numbers) + 0
    case 'first':
      return scalars[0]
    case 'last':
      return scalars.at(-1)
    case 'distinct':
      return distinct.length === 0 ? undefined : distinct.length
    case 'unique':
      return distinct.length === 0 ? undefined : distinct
    case 'mode':
      return distinct
        .filter((text) => count(text) >= reduce.minFrequency)
        .sort((a, b) => count(b) - count(a) || byCodePoint(a, b))[0]
    case 'distinct_days': {
      const days = new Set(events.map(({ te }) => dayOf(reduce.timezone, te)))
      return days.size === 0 ? undefined : days.size
    }
  }
}

const reducers: readonly Reduce[] = [
  { type: 'count' },
  ...(['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct', 'unique'] as const).map((type) => ({
    type,
    path,
  })),
  { type: 'mode', path, minFrequency: 1 },
  { type: 'mode', path, minFrequency: 2 },
  { type: 'distinct_days', timezone: 'Europe/Dublin' },
]

const kindFor = (reduce: Reduce, { window }: Scene) =>
  measureKind({ events: { name: 'e', where: null, window }, reduce }, keepAll)

const named = reducers.map((reduce) => [JSON.stringify(reduce), reduce] as const)

test.each(named)('%s of events in any order is what the list of them says', (_, reduce) => {
  fc.assert(
    fc.property(sceneOf(properties), (scene) => {
      const kind = kindFor(reduce, scene)
      const summary = foldAll(kind, scene.events)
      for (const at of scene.asked)
        expect(kind.valueAt(summary, at)).toEqual(naive(reduce, scene, at))
      expect(foldAll(kind, scene.events.toReversed())).toEqual(summary)
      expect(foldAll(kind, inOrder(scene.events))).toEqual(summary)
    }),
    { numRuns: 120 },
  )
})

test.each(named)('%s of parts is that of the whole, however it is cut and kept', (_, reduce) => {
  fc.assert(
    fc.property(sceneOf(properties), (scene) => {
      const kind = kindFor(reduce, scene)
      const [head, tail] = [scene.events.slice(0, scene.cut), scene.events.slice(scene.cut)]
      const [left, right] = [foldAll(kind, head), foldAll(kind, tail)]
      const whole = foldAll(kind, scene.events)
      expect(kind.combine(left, right)).toEqual(whole)
      expect(kind.combine(right, left)).toEqual(whole)
      expect(foldAll(kind, tail, rewritten(kind, left))).toEqual(whole)
      expect(rewritten(kind, whole)).toEqual(whole)
      const middle = foldAll(kind, tail.slice(0, 2))
      const rest = foldAll(kind, tail.slice(2))
      expect(kind.combine(kind.combine(left, middle), rest)).toEqual(whole)
      expect(kind.combine(left, kind.combine(middle, rest))).toEqual(whole)
    }),
    { numRuns: 80 },
  )
})

test.each(named)('%s does not change before the instant it names', (_, reduce) => {
  fc.assert(
    fc.property(sceneOf(properties, { eventsMax: 6, instantMax: 20 }), (scene) => {
      const kind = kindFor(reduce, scene)
      const summary = foldAll(kind, scene.events)
      const at = scene.asked[0] as number
      const now = naive(reduce, scene, at)
      const due = kind.nextChange(summary, at)
      expect(due).toBeGreaterThan(at)
      const until = scene.window?.type === 'calendar' ? at + 6 * 86_400_000 : at + 800
      for (const edge of edgesAfter(scene, at, Math.min(due, until)))
        if (edge < due) expect(naive(reduce, scene, edge)).toEqual(now)
    }),
    { numRuns: 80 },
  )
})

test('what changes nothing gives the very same summary', () => {
  const said = { te: 1_000, r: 1_000, id: 'm', step: 0 }
  const window = { type: 'last', lastMs: 60, gridMs: 10 } as const
  for (const [, reduce] of named) {
    const kind = measureKind({ events: { name: 'e', where: null, window }, reduce }, keepAll)
    const summary = foldAll(kind, [{ ...said, properties: { p: 5 } }])
    expect(kind.fold(summary, { ...said, te: 900, properties: { p: 5 } }, 0)).toBe(summary)
    if ('path' in reduce) expect(kind.fold(summary, { ...said, properties: {} }, 0)).toBe(summary)
  }
})
