import { expect, test } from 'vitest'
import { canonicalText } from '../../../src/domain/condition/canonical.ts'
import { leavesOf } from '../../../src/domain/condition/leaf.ts'
import { parseCondition, parseMeasure } from '../../../src/domain/condition/parse.ts'

const event = { name: 'Order Completed' }
const once = { op: 'gte', value: 1 }

const parsed = (json: unknown) => {
  const result = parseCondition(json)
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.condition
}

test('every kind of condition is read as it was written', () => {
  const condition = parsed({
    all: [
      {
        event: {
          name: 'Order Completed',
          where: {
            all: [
              { prop: 'price', op: 'gte', value: 100 },
              { not: { prop: ['a.b'], op: 'absent' } },
            ],
          },
          window: { last: '90d' },
        },
        count: { op: 'gte', value: 2 },
      },
      { not: { any: [{ trait: 'plan.tier', op: 'one_of', value: ['free', 1], ci: true }] } },
    ],
  })
  expect(condition).toEqual({
    type: 'all',
    of: [
      {
        type: 'count',
        events: {
          name: 'Order Completed',
          where: {
            type: 'all',
            of: [
              {
                type: 'prop',
                test: { path: ['price'], comparison: { op: 'gte', value: 100, foldCase: false } },
              },
              {
                type: 'not',
                of: { type: 'prop', test: { path: ['a.b'], comparison: { op: 'absent' } } },
              },
            ],
          },
          window: { type: 'last', lastMs: 90 * 86_400_000, gridMs: 3_600_000 },
        },
        threshold: { op: 'gte', value: 2 },
      },
      {
        type: 'not',
        of: {
          type: 'any',
          of: [
            {
              type: 'trait',
              test: {
                path: ['plan', 'tier'],
                comparison: { op: 'one_of', value: ['free', 1], foldCase: true },
              },
            },
          ],
        },
      },
    ],
  })
})

const order = (made: object) => ({ event, ...made })
const windowed = (window: object) => ({ event: { ...event, window }, count: once })
const steps = (...list: readonly object[]) => ({
  sequence: { steps: [{ event, as: 'a' }, ...list] },
})
const second = { event: { name: 'B' } }

test.each([
  [null, '', 'expected an object'],
  [{}, '', 'expected one of "all", "any", "not", "trait", "event"'],
  [{ funnel: {} }, '', 'found "funnel"'],
  [{ all: [] }, 'all', 'expected at least one condition'],
  [{ any: [] }, 'any', 'expected at least one condition'],
  [{ all: [{ all: [{ audience: 'x' }] }] }, 'all[0].all[0].audience', 'written out first'],
  [{ all: [{ trait: 'a', op: 'exists' }], any: [] }, '', 'only one of'],
  [{ not: [] }, 'not', 'expected an object'],
  [{ identified: false }, 'identified', 'expected true'],
  [{ trait: 'a', op: 'resembles', value: 'x' }, 'op', 'expected one of "eq"'],
  [{ trait: 'a', op: 'eq' }, 'value', 'expected a string, a finite number or a boolean'],
  [{ trait: 'a', op: 'eq', value: null }, 'value', 'use "absent"'],
  [{ trait: 'a', op: 'exists', value: 1 }, '', '"value" is not known here'],
  [{ trait: 'a', op: 'eq', ref: 'b' }, 'ref', 'expected "trait:'],
  [{ trait: 'a', op: 'eq', ref: 'trait:a[*]' }, 'ref', 'expected a trait'],
  [{ trait: 'a', op: 'eq', ref: 'trait:b', value: 1 }, '', '"value" is not known here'],
  [{ trait: 'a', op: 'contains', ref: 'trait:b' }, '', '"ref" is not known here'],
  [{ trait: 'a', op: 'one_of', value: [] }, 'value', 'expected a list of 1'],
  [{ trait: 'a', op: 'contains', value: 5 }, 'value', 'expected a string'],
  [{ trait: 'a', op: 'matches', value: '(a' }, 'value', 'expected ")"'],
  [{ trait: 'a', op: 'matches', value: '(?=a)' }, 'value', 'ahead'],
  [{ trait: 'a', op: 'matches', value: '(a)\\1' }, 'value', 'cannot be matched'],
  [{ trait: 'a', op: 'matches', value: '((a{99}){99}){99}' }, 'value', 'repeats less'],
  [{ trait: 'a', op: 'matches', value: 'a'.repeat(257) }, 'value', 'at most 256'],
  [{ trait: 'a', op: 'before_date', value: '2026-02-30' }, 'value', 'expected a date'],
  [{ trait: 'a', op: 'before_date', value: '2026-02-03T10:00' }, 'value', 'expected a date'],
  [{ trait: 'a', op: 'after_date', value: '2026-02-03', ci: true }, '', '"ci" is not known'],
  [{ trait: 'a', op: 'within_last', value: 7 }, 'value', 'expected a string'],
  [{ trait: 'a', op: 'within_last', value: '7 days' }, 'value', 'expected a duration'],
  [{ trait: 'a', op: 'within_last', value: '7d', timezone: 'Mars' }, 'timezone', 'IANA'],
  [{ trait: '', op: 'exists' }, 'trait', 'expected a name'],
  [{ trait: '[*].a', op: 'exists' }, 'trait', 'expected a name'],
  [{ event, count: once, reduce: 'sum' }, '', '"reduce" is not known here'],
  [{ event, count: once, sum: { prop: 'a' } }, '', 'only one of'],
  [{ event }, '', 'expected one of "count", "sum"'],
  [order({ sum: { prop: 'price' } }), 'sum.op', 'missing'],
  [order({ sum: { op: 'gt', value: 1 } }), 'sum.prop', 'expected a name'],
  [order({ sum: { prop: 'items[*].price', op: 'gt', value: 1 } }), 'sum.prop', 'one value'],
  [order({ sum: { prop: 'price', op: 'gt', value: '1' } }), 'sum.value', 'finite number'],
  [order({ sum: { prop: 'price', op: 'exists' } }), 'sum.op', 'expected one of "eq"'],
  [order({ unique: { prop: 'sku', op: 'eq', value: 'a' } }), 'unique.op', 'contains_any'],
  [
    order({ mode: { prop: 'a', op: 'eq', value: 'a', min_frequency: 0 } }),
    'mode.min_frequency',
    'from 1',
  ],
  [order({ distinct_days: { prop: 'a', op: 'gt', value: 1 } }), 'distinct_days', '"prop"'],
  [
    order({ distinct_days: { op: 'gt', value: 1, timezone: 'x' } }),
    'distinct_days.timezone',
    'IANA',
  ],
  [{ event, count: { op: 'neq', value: 1 } }, 'count.op', 'expected one of "gte"'],
  [{ event, count: { op: 'gte', value: 1.5 } }, 'count.value', 'whole number'],
  [{ event, count: { op: 'gte', value: -1 } }, 'count.value', 'whole number'],
  [{ compare: [{ event, count: {} }], op: 'gt' }, 'compare', 'two measures'],
  [
    {
      compare: [
        { event, count: {} },
        { event, count: once },
      ],
      op: 'gt',
    },
    'compare[1].count',
    '"op"',
  ],
  [
    {
      compare: [
        { event, count: {} },
        { event, unique: { prop: 'a' } },
      ],
      op: 'gt',
    },
    'compare[1].unique',
    'distinct',
  ],
  [{ event: { name: '' }, count: once }, 'event.name', 'expected a string'],
  [windowed({}), 'event.window', 'expected "last"'],
  [windowed({ last: '90 days' }), 'event.window.last', 'duration'],
  [windowed({ last: '30s' }), 'event.window.last', 'one minute'],
  [windowed({ last: '2881m' }), 'event.window.last', 'multiple of 3600 s'],
  [windowed({ last: '90d', grid: '1m' }), 'event.window.last', 'at most 4096'],
  [windowed({ last: '90d', after: '2026-01-01' }), 'event.window', '"after" is not known'],
  [windowed({ last: '90d', calendar_days: 2 }), 'event.window', 'only one of'],
  [windowed({ after: '2026-01-01x' }), 'event.window.after', 'expected a date'],
  [
    windowed({ after: '2026-01-02', before: '2026-01-02' }),
    'event.window.before',
    'later than "after"',
  ],
  [windowed({ after: '2026-01-02', grid: '1h' }), 'event.window', 'no "grid"'],
  [windowed({ between_ago: ['90d', '30d'] }), 'event.window.between_ago', 'above the first'],
  [windowed({ between_ago: ['90d'] }), 'event.window.between_ago', 'two ages'],
  [windowed({ calendar_days: 0 }), 'event.window.calendar_days', 'whole number'],
  [windowed({ calendar_days: 1, timezone: 'x' }), 'event.window.timezone', 'IANA'],
  [{ event: { ...event, where: { all: [] } }, count: once }, 'event.where.all', 'at least one'],
  [
    { event: { ...event, where: { trait: 'a', op: 'exists' } }, count: once },
    'event.where',
    'found "trait"',
  ],
  [
    { event: { ...event, where: { prop: 'a', op: 'gt', ref: 'b.prop.c' } }, count: once },
    'event.where.ref',
    'expected a trait such as',
  ],
  [
    { event: { ...event, where: { prop: 'a', op: 'gt', ref: 'trait:b[*]' } }, count: once },
    'event.where.ref',
    'expected a trait such as',
  ],
  [
    { event: { ...event, where: { prop: 'a[*]', op: 'eq', ref: 'trait:b' } }, count: once },
    'event.where.prop',
    'a path to one value',
  ],
  [
    { event: { ...event, where: { prop: 'a', op: 'starts_with', ref: 'trait:b' } }, count: once },
    'event.where',
    '"ref" is not known here',
  ],
  [
    { event: { ...event, where: { prop: 'a', op: 'within_last', value: '1d' } }, count: once },
    'event.where.op',
    'expected one of',
  ],
  [steps(), 'sequence.steps', '2 to 8 steps'],
  [steps({ ...second, then: 'did_not' }, second), 'sequence.steps[1].then', 'only the last'],
  [steps({ ...second, as: 'a' }), 'sequence.steps[1].as', 'no other step'],
  [steps({ ...second, within: '1y' }), 'sequence.steps[1].within', 'duration'],
  [
    { sequence: { steps: [{ event, within: '1d' }, second] } },
    'sequence.steps[0]',
    '"within" is not known',
  ],
  [
    { sequence: { steps: [{ event: { ...event, window: { last: '1d' } } }, second] } },
    'sequence.steps[0].event',
    '"window" is not known',
  ],
  [
    steps({ event: { name: 'B', where: { prop: 'x', op: 'eq', ref: 'b.prop.x' } } }),
    'sequence.steps[1].event.where.ref',
    'earlier step (a)',
  ],
  [
    steps({ event: { name: 'B', where: { not: { prop: 'x', op: 'eq', ref: 'a.prop.x' } } } }),
    'sequence.steps[1].event.where.not.ref',
    'at the top of its "where"',
  ],
  [
    { sequence: { steps: [{ event }, second], settle: 'after_deadline' } },
    'sequence.settle',
    'did_not',
  ],
  [
    { sequence: { steps: [{ event }, { ...second, then: 'did_not' }], settle: 'after_deadline' } },
    'sequence.settle',
    'deadline',
  ],
] as const)('%j is refused at %j: %s', (json, path, message) => {
  const result = parseCondition(json)
  if (result.ok) throw new Error('was accepted')
  expect(result.problems).toContainEqual({ path, message: expect.stringContaining(message) })
})

test('measures, windows and sequences are read as they were written', () => {
  const read = (json: unknown) => parseCondition(json, { timezone: 'Europe/Dublin' })
  const summerDay = Date.parse('2026-06-30T23:00:00Z')
  expect(
    read({
      event: { name: 'A', window: { after: '2026-07-01', before: '2026-07-02T00:00:00Z' } },
      avg: { prop: 'price', op: 'gt', ref: 'trait:limit' },
    }),
  ).toMatchObject({
    condition: {
      type: 'measure',
      measure: {
        events: {
          window: { type: 'fixed', after: summerDay, before: Date.parse('2026-07-02T00:00:00Z') },
        },
        reduce: { type: 'avg', path: ['price'] },
      },
      comparison: { op: 'gt', ref: { type: 'trait', path: ['limit'] }, foldCase: false },
    },
  })
  expect(
    read({
      event: { name: 'A', window: { calendar_days: 7 } },
      distinct_days: { op: 'gte', value: 3 },
    }),
  ).toMatchObject({
    condition: {
      measure: {
        events: { window: { type: 'calendar', days: 7, timezone: 'Europe/Dublin' } },
        reduce: { type: 'distinct_days', timezone: 'Europe/Dublin' },
      },
    },
  })
  expect(
    read({
      sequence: {
        window: { between_ago: ['1d', '7d'] },
        settle: 'after_deadline',
        steps: [
          { event: { name: 'A' }, as: 'first' },
          {
            event: {
              name: 'B',
              where: {
                all: [
                  { prop: 'cart', op: 'eq', ref: 'first.prop.cart' },
                  { prop: 'price', op: 'gt', value: 1 },
                ],
              },
            },
            then: 'did_not',
            within: '1d',
          },
        ],
      },
    }),
  ).toEqual({
    ok: true,
    condition: {
      type: 'sequence',
      sequence: {
        window: {
          ...{ type: 'ago', fromMs: 86_400_000, untilMs: 7 * 86_400_000, gridMs: 3_600_000 },
        },
        settle: 'after_deadline',
        steps: [
          { name: 'A', where: null, then: 'did', withinMs: null, match: [] },
          {
            name: 'B',
            where: {
              type: 'prop',
              test: { path: ['price'], comparison: { op: 'gt', value: 1, foldCase: false } },
            },
            then: 'did_not',
            withinMs: 86_400_000,
            match: [{ path: ['cart'], op: 'eq', step: 0, of: ['cart'] }],
          },
        ],
      },
    },
  })
})

test('what two measures say of each other is one condition, however it is written', () => {
  const a = { event: { name: 'A' } }
  const b = { event: { name: 'B' }, sum: { prop: 'x' } }
  const texts = [
    { event: a.event, count: { op: 'gt', ref: b } },
    { compare: [{ ...a, count: {} }, b], op: 'gt' },
    { compare: [b, { ...a, count: {} }], op: 'lt' },
    { not: { not: { any: [{ all: [{ compare: [b, { ...a, count: {} }], op: 'lt' }] }] } } },
  ].map((json) => canonicalText(parsed(json)))
  expect(new Set(texts).size).toBe(1)
  const last = (name: string) => ({ event: { name }, last: { prop: 'x' } })
  const text = (left: object, op: string, right: object) =>
    canonicalText(parsed({ compare: [left, right], op }))
  expect(text(last('A'), 'eq', last('B'))).not.toBe(text(last('B'), 'eq', last('A')))
})

test('a computed trait is a measure without a comparison', () => {
  expect(parseMeasure({ event: { name: 'A' }, mode: { prop: ['a.b'], min_frequency: 3 } })).toEqual(
    {
      ok: true,
      measure: {
        events: { name: 'A', where: null, window: null },
        reduce: { type: 'mode', path: ['a.b'], minFrequency: 3 },
      },
    },
  )
  expect(parseMeasure({ event: { name: 'A' }, sum: { prop: 'a', op: 'gt', value: 1 } }).ok).toBe(
    false,
  )
})

test('all problems are reported at once', () => {
  const result = parseCondition({
    any: [
      { trait: 'a', op: 'is' },
      { event: {}, count: {} },
    ],
  })
  expect(result.ok ? [] : result.problems.map(({ path }) => path)).toEqual([
    'any[0].op',
    'any[1].event.name',
    'any[1].count.op',
    'any[1].count.value',
  ])
})

test('nesting and size are bounded', () => {
  let deep: object = { trait: 'a', op: 'exists' }
  for (let level = 0; level < 51; level++) deep = { not: deep }
  expect(parseCondition(deep).ok).toBe(false)
  const wide = { any: Array.from({ length: 201 }, () => ({ trait: 'a', op: 'exists' })) }
  expect(parseCondition(wide).ok).toBe(false)
})

test('leaves of one event, filter and window are one leaf, whatever N they are compared with', () => {
  const where = (first: object, second: object) => ({ ...event, where: { all: [first, second] } })
  const price = { prop: 'price', op: 'gt', value: 1 }
  const currency = { prop: 'currency', op: 'one_of', value: ['EUR', 'USD'] }
  const turned = { prop: 'currency', op: 'one_of', value: ['USD', 'EUR'] }
  const leaves = leavesOf(
    parsed({
      all: [
        { event: where(price, currency), count: { op: 'gte', value: 3 } },
        { event: where(turned, price), count: { op: 'eq', value: 7 } },
        { event, count: once },
      ],
    }),
  )
  expect(leaves.map(({ keep }) => keep)).toEqual([4, 8, 2])
  expect(leaves[0]?.hash).toBe(leaves[1]?.hash)
  expect(leaves[0]?.hash).not.toBe(leaves[2]?.hash)
})

test('windows of different grids are different leaves', () => {
  const text = (window: object) =>
    canonicalText(parsed({ event: { ...event, window }, count: once }))
  expect(text({ last: '2h' })).not.toBe(text({ last: '2h', grid: '2m' }))
  expect(text({ last: '48h' })).toBe(text({ last: '2d' }))
})
