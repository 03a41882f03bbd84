import { expect, test } from 'vitest'
import { canonicalText } from '../../../src/domain/condition/canonical.ts'
import { leavesOf } from '../../../src/domain/condition/leaf.ts'
import { parseCondition } from '../../../src/domain/condition/parse.ts'

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

test.each([
  [null, '', 'expected an object'],
  [{}, '', 'expected one of "all", "any", "not", "trait", "event", found an empty object'],
  [{ sequence: {} }, '', 'found "sequence"'],
  [{ all: [] }, 'all', 'expected at least one condition'],
  [{ any: [] }, 'any', 'expected at least one condition'],
  [{ all: [{ all: [{ audience: 'x' }] }] }, 'all[0].all[0]', 'found "audience"'],
  [{ all: [{ trait: 'a', op: 'exists' }], any: [] }, '', 'only one of'],
  [{ not: [] }, 'not', 'expected an object'],
  [{ trait: 'a', op: 'matches', value: 'x' }, 'op', 'expected one of "eq"'],
  [{ trait: 'a', op: 'eq' }, 'value', 'expected a string, a finite number or a boolean'],
  [{ trait: 'a', op: 'eq', value: null }, 'value', 'use "absent"'],
  [{ trait: 'a', op: 'exists', value: 1 }, '', '"value" is not known here'],
  [{ trait: 'a', op: 'eq', ref: 'trait:b' }, '', '"ref" is not known here'],
  [{ trait: 'a', op: 'one_of', value: [] }, 'value', 'expected a list of 1'],
  [{ trait: 'a', op: 'contains', value: 5 }, 'value', 'expected a string'],
  [{ trait: '', op: 'exists' }, 'trait', 'expected a name'],
  [{ trait: ['a', '[*]'], op: 'exists' }, 'trait', '"[*]"'],
  [{ event, count: once, reduce: 'sum' }, '', '"reduce" is not known here'],
  [{ event }, 'count', 'missing'],
  [{ event, sum: { prop: 'price' } }, '', '"sum" is not known here'],
  [{ event, count: { op: 'neq', value: 1 } }, 'count.op', 'expected one of "gte"'],
  [{ event, count: { op: 'gte', value: 1.5 } }, 'count.value', 'whole number'],
  [{ event, count: { op: 'gte', value: -1 } }, 'count.value', 'whole number'],
  [{ event: { name: '' }, count: once }, 'event.name', 'expected a string'],
  [{ event: { ...event, window: {} }, count: once }, 'event.window.last', 'missing'],
  [
    { event: { ...event, window: { last: '90 days' } }, count: once },
    'event.window.last',
    'duration',
  ],
  [
    { event: { ...event, window: { last: '30s' } }, count: once },
    'event.window.last',
    'one minute',
  ],
  [
    { event: { ...event, window: { last: '2881m' } }, count: once },
    'event.window.last',
    'multiple of 3600 s',
  ],
  [
    { event: { ...event, window: { last: '90d', grid: '1m' } }, count: once },
    'event.window.last',
    'at most 4096',
  ],
  [
    { event: { ...event, window: { after: '2026-01-01' } }, count: once },
    'event.window',
    '"after" is not known',
  ],
  [{ event: { ...event, where: { all: [] } }, count: once }, 'event.where.all', 'at least one'],
  [
    { event: { ...event, where: { trait: 'a', op: 'exists' } }, count: once },
    'event.where',
    'found "trait"',
  ],
] as const)('%j is refused at %j: %s', (json, path, message) => {
  const result = parseCondition(json)
  if (result.ok) throw new Error('was accepted')
  expect(result.problems).toContainEqual({ path, message: expect.stringContaining(message) })
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
