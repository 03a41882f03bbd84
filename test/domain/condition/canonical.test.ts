import { expect, test } from 'vitest'
import { canonicalText } from '../../../src/domain/condition/canonical.ts'
import { leavesOf } from '../../../src/domain/condition/leaf.ts'
import { parseCondition } from '../../../src/domain/condition/parse.ts'

const parsed = (json: unknown) => {
  const result = parseCondition(json)
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.condition
}

const text = (json: unknown) => canonicalText(parsed(json))

const a = { trait: 'a', op: 'exists' }
const b = { trait: 'b', op: 'exists' }

test.each([
  [{ all: [a, b] }, { all: [b, a, b] }],
  [{ all: [a, { all: [b, a] }] }, { all: [a, b] }],
  [{ any: [a] }, a],
  [{ not: { not: a } }, a],
  [{ not: { any: [{ not: a }, { all: [{ not: a }] }] } }, a],
  [{ any: [a, { not: { not: { any: [b, a] } } }] }, { any: [a, b] }],
  [
    { trait: ['a', 'b'], op: 'exists' },
    { trait: 'a.b', op: 'exists' },
  ],
  [
    { trait: 'a', op: 'before_date', value: '2026-01-01' },
    { trait: 'a', op: 'before_date', value: '2026-01-01T01:00:00+01:00' },
  ],
  [
    { trait: 'a', op: 'eq', ref: 'trait:b' },
    { trait: 'a', op: 'eq', ref: { trait: ['b'] } },
  ],
])('%j and %j say the same', (one, other) => {
  expect(text(one)).toBe(text(other))
})

const event = { name: 'A' }
const windowed = (window: object) => ({
  event: { ...event, window },
  sum: { prop: 'x', op: 'gt', value: 1 },
})
const steps = (sequence: object, last: object = {}, where: object = {}) => ({
  sequence: {
    steps: [
      { event, as: 'a' },
      { event: { ...event, ...where }, ...last },
    ],
    ...sequence,
  },
})
const sharing = (all: readonly object[]) => ({ where: { all } })
const same = (prop: string, op = 'eq') => ({ prop, op, ref: `a.prop.${prop}` })

/** All of them differ in what they say, each from its neighbours in one thing. */
const different = [
  a,
  b,
  { not: a },
  { all: [a, b] },
  { any: [a, b] },
  { all: [a, { any: [a, b] }] },
  { trait: 'a', op: 'absent' },
  { trait: 'a', op: 'eq', value: 'x' },
  { trait: 'a', op: 'eq', value: 'x', ci: true },
  { trait: 'a', op: 'eq', ref: 'trait:x' },
  { trait: 'a', op: 'eq', ref: { event, sum: { prop: 'x' } } },
  { trait: 'a', op: 'eq', value: 1 },
  { trait: 'a', op: 'eq', value: '1' },
  { trait: 'a', op: 'one_of', value: [1] },
  { trait: 'a', op: 'one_of', value: ['1'] },
  { trait: 'a', op: 'matches', value: 'x' },
  { trait: 'a', op: 'within_last', value: '1d' },
  { trait: 'a', op: 'within_last', value: '2d' },
  { trait: 'a', op: 'within_last', value: '1d', timezone: 'Asia/Tokyo' },
  { trait: 'a', op: 'within_next', value: '1d' },
  { trait: 'a', op: 'before_date', value: '2026-01-01' },
  { trait: 'a', op: 'before_date', value: '2026-01-01', timezone: 'Asia/Tokyo' },
  { identified: true },
  ...['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct', 'mode'].map((reducer) => ({
    event,
    [reducer]: { prop: 'x', op: 'gt', value: 1 },
  })),
  { event, mode: { prop: 'x', op: 'gt', value: 1, min_frequency: 1 } },
  { event, sum: { prop: 'x', op: 'gt', value: 2 } },
  { event, sum: { prop: 'y', op: 'gt', value: 1 } },
  { event, count: { op: 'gt', value: 1 } },
  { event, count: { op: 'gt', ref: 'trait:x' } },
  { event, distinct_days: { op: 'gt', value: 1 } },
  { event, distinct_days: { op: 'gt', value: 1, timezone: 'Asia/Tokyo' } },
  {
    compare: [
      { event, sum: { prop: 'x' } },
      { event, count: {} },
    ],
    op: 'gt',
  },
  {
    compare: [
      { event, sum: { prop: 'x' } },
      { event, count: {} },
    ],
    op: 'lt',
  },
  { event, sum: { prop: 'x', op: 'gt', ref: { event, count: {} }, ci: true } },
  windowed({ last: '7d' }),
  windowed({ last: '7d', grid: '1d' }),
  windowed({ between_ago: ['1d', '7d'] }),
  windowed({ between_ago: ['2d', '7d'] }),
  windowed({ after: '2026-01-01' }),
  windowed({ before: '2026-01-01' }),
  windowed({ after: '2026-01-01', timezone: 'Asia/Tokyo' }),
  windowed({ calendar_days: 7 }),
  windowed({ calendar_days: 7, timezone: 'Asia/Tokyo' }),
  steps({}),
  steps({ window: { last: '7d' } }),
  steps({}, { within: '1d' }),
  steps({}, { within: '1d', then: 'did_not' }),
  steps({ settle: 'after_deadline' }, { within: '1d', then: 'did_not' }),
  steps({}, {}, sharing([same('x')])),
  steps({}, {}, sharing([same('x', 'neq')])),
  steps({}, {}, sharing([same('x'), same('y')])),
  steps({}, {}, sharing([{ prop: 'x', op: 'eq', value: 'a.prop.x' }])),
]

test('conditions that say different things have different texts', () => {
  const texts = different.map(text)
  const twice = texts.filter((each, at) => texts.indexOf(each) !== at)
  expect(twice).toEqual([])
})

test('the leaves of one text are the same, and measures and sequences are shared by what they keep', () => {
  const hashes = (json: unknown) => leavesOf(parsed(json)).map(({ hash }) => hash)
  const spent = (value: number) => ({ event, sum: { prop: 'x', op: 'gt', value } })
  expect(hashes(spent(1))).toEqual(hashes(spent(2)))
  expect(hashes(steps({}, {}, sharing([same('x'), same('y')])))).toEqual(
    hashes(steps({}, {}, sharing([same('y'), same('x'), same('y')]))),
  )
  expect(
    hashes({
      compare: [
        { event, sum: { prop: 'x' } },
        { event, count: {} },
      ],
      op: 'gt',
    }),
  ).toEqual(expect.arrayContaining(hashes(spent(1))))
})

// Released: a leaf that is kept under this name must be found again.
test('the names of released leaves stay', () => {
  const where = {
    all: [
      { prop: 'price', op: 'gte', value: 100 },
      { not: { any: [{ prop: 'sku', op: 'one_of', value: ['b', 1, 'a'], ci: true }] } },
      { prop: 'x.y', op: 'absent' },
    ],
  }
  const count = { op: 'gte', value: 2 }
  const leaves = leavesOf(
    parsed({ event: { name: 'Order', where, window: { last: '90d' } }, count }),
  )
  expect(leaves.map(({ hash }) => hash)).toEqual([
    'ad0e5f1ec98f8a7f4e772b9373a08d8e41ca79eb6ca7051d8db703cb879375cb',
  ])
})
