import { expect, test } from 'vitest'
import { bind, holds } from '../../../src/domain/condition/evaluate.ts'
import { kindOf } from '../../../src/domain/condition/leaf.ts'
import { parseCondition } from '../../../src/domain/condition/parse.ts'
import { nextChange } from '../../../src/domain/condition/turn.ts'
import { passes, turnsAfter } from '../../../src/domain/condition/value.ts'
import type { Json } from '../../../src/domain/message.ts'

const day = 86_400_000
const now = Date.parse('2026-06-15T12:00:00Z')

const testOf = (comparison: object, timezone = 'UTC') => {
  const parsed = parseCondition({ trait: 'on', ...comparison }, { timezone })
  if (!parsed.ok || parsed.condition.type !== 'trait') throw new Error(JSON.stringify(parsed))
  return parsed.condition.test
}

const dated = (comparison: object, on: Json, timezone = 'UTC') =>
  passes(testOf(comparison, timezone), { on }, { at: now, ref: () => undefined })

const iso = (at: number) => new Date(at).toISOString()

test('of every date exactly one of the four spans holds', () => {
  const spans = ['before_last', 'within_last', 'within_next', 'after_next']
  const which = (at: number) => spans.filter((op) => dated({ op, value: '2d' }, iso(at)))
  expect(which(now - 2 * day)).toEqual(['before_last'])
  expect(which(now - 2 * day + 1)).toEqual(['within_last'])
  expect(which(now)).toEqual(['within_last'])
  expect(which(now + 1)).toEqual(['within_next'])
  expect(which(now + 2 * day)).toEqual(['within_next'])
  expect(which(now + 2 * day + 1)).toEqual(['after_next'])
})

test.each(['before_last', 'within_last', 'within_next', 'after_next'])(
  'the next turn of %s is the first instant at which it is otherwise',
  (op) => {
    const test = testOf({ op, value: '2d' })
    const root = { on: iso(now) }
    const ask = (at: number) => passes(test, root, { at, ref: () => undefined })
    const edges = [now - 2 * day, now, now + 2 * day]
    for (const from of edges.flatMap((edge) => [edge - 2, edge - 1, edge, edge + 1])) {
      const turns = edges.filter((edge) => edge > from && ask(edge) !== ask(edge - 1))
      expect(turnsAfter(test, root, from)).toBe(turns[0] ?? Number.POSITIVE_INFINITY)
    }
  },
)

test('a date alone is the start of that day in the time zone, in a trait as in a literal', () => {
  const june = { op: 'after_date', value: '2026-06-15' }
  expect(dated(june, '2026-06-14T23:00:00Z', 'Europe/Dublin')).toBe(true)
  expect(dated(june, '2026-06-14T22:59:59.999Z', 'Europe/Dublin')).toBe(false)
  expect(dated(june, '2026-06-14T23:00:00Z')).toBe(false)
  const before = { op: 'before_date', value: '2026-06-14T22:59:59.999Z' }
  expect(dated(before, '2026-06-15', 'Europe/Dublin')).toBe(false)
  expect(dated({ ...before, timezone: 'Asia/Tokyo' }, '2026-06-15', 'Europe/Dublin')).toBe(true)
})

test.each([
  '2026-02-30',
  '2026-06-15T12:00',
  'June 15',
  '',
  1781524800,
  null,
  ['2026-06-15'],
  '2026-6-1',
])('%j is no date, and no comparison of dates holds for it', (on) => {
  for (const op of ['before_date', 'after_date'])
    expect(dated({ op, value: '2026-06-15' }, on)).toBe(false)
  for (const op of ['before_last', 'within_last', 'within_next', 'after_next'])
    expect(dated({ op, value: '1d' }, on)).toBe(false)
  expect(turnsAfter(testOf({ op: 'within_last', value: '1d' }), { on }, 0)).toBe(
    Number.POSITIVE_INFINITY,
  )
})

test('a path through lists holds for any element, and absent is the contrary of exists', () => {
  const ask = (comparison: object, on: Json) => {
    const parsed = parseCondition({ trait: 'on[*].sku', ...comparison })
    if (!parsed.ok || parsed.condition.type !== 'trait') throw new Error(JSON.stringify(parsed))
    return passes(parsed.condition.test, { on }, { at: now, ref: () => undefined })
  }
  const items = [{ sku: 'a' }, { sku: null }, {}, 7, { sku: 'b' }]
  expect(ask({ op: 'eq', value: 'b' }, items)).toBe(true)
  expect(ask({ op: 'neq', value: 'b' }, items)).toBe(true)
  expect(ask({ op: 'neq', value: 'b' }, [{ sku: 'b' }])).toBe(false)
  expect(ask({ op: 'exists' }, items)).toBe(true)
  expect(ask({ op: 'absent' }, items)).toBe(false)
  for (const none of [[], [{}], { sku: 'b' }, 'b', null]) {
    expect(ask({ op: 'absent' }, none)).toBe(true)
    expect(ask({ op: 'eq', value: 'b' }, none)).toBe(false)
  }
})

test('a date made of events turns when its time comes, without another event', () => {
  const parsed = parseCondition({
    event: { name: 'Trial Started' },
    last: { prop: 'ends', op: 'within_next', value: '2d' },
  })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const bound = bind(parsed.condition, ({ spec, keep }) => ({ id: 1, kind: kindOf(spec, keep) }))
  if (bound?.type !== 'measure') throw new Error('is no measure')
  const { kind } = bound.leaf
  const properties = { ends: iso(now) }
  const seen = { te: now - 9 * day, r: now - 9 * day, id: 'm', properties }
  const summary = kind.fold(kind.empty, seen, 0)
  const facts = { identified: true, traits: () => ({}), summary: () => summary }
  const turns: number[] = []
  for (let at = now - 9 * day; at < now + 9 * day && turns.length < 9; ) {
    at = nextChange(bound, facts, at)
    if (at !== Number.POSITIVE_INFINITY) turns.push(at)
  }
  expect(turns).toEqual([now - 2 * day, now])
  expect([now - 2 * day - 1, now - 2 * day, now].map((at) => holds(bound, facts, at))).toEqual([
    false,
    true,
    false,
  ])
})
