import { expect, test } from 'vitest'
import { printCondition, printMeasure } from '../../../src/domain/condition/text/print.ts'
import {
  pointAt,
  readConditionText,
  readMeasureText,
} from '../../../src/domain/condition/text/read.ts'

const read = (text: string) => {
  const found = readConditionText(text)
  if (!found.ok) throw new Error(JSON.stringify(found.problems))
  return found.json
}

const bought = { name: 'Shoes Bought' }
const once = { op: 'gte', value: 1 }
const spend = { trait: 'total_spend', op: 'gt', value: 200 }

// The examples of the query language that others document, in their own spelling.
test.each([
  [
    "event('Shoes Bought').where( property('price') >= 100 ).within(7 days).count() >= 1",
    {
      event: {
        ...bought,
        where: { prop: 'price', op: 'gte', value: 100 },
        window: { last: '7d' },
      },
      count: once,
    },
  ],
  [
    `event('Shoes Bought').where(
       property('price') >= 100
       AND
       event('Shoes Returned').within(parent: 5 days).count() >= 1
     ).within(30 days).count() >= 1`,
    {
      sequence: {
        window: { last: '30d' },
        steps: [
          { event: { ...bought, where: { prop: 'price', op: 'gte', value: 100 } } },
          { event: { name: 'Shoes Returned' }, within: '5d' },
        ],
      },
    },
  ],
  [
    "NOT ( event('Shoes Bought').count() >= 1 AND trait('total_spend') > 200 )",
    { not: { all: [{ event: bought, count: once }, spend] } },
  ],
  [
    `event('Order Completed').where(property('price') >= 100).within(30 days).count() >= 2 AND NOT event('Product
Added').where(event('Order Completed').where(property('cart_id') = property(parent: 'cart_id')).within(parent: 1 day).count()
>= 1).within(7 days).count() >= 1 AND trait('plan.tier') != 'free'`,
    {
      all: [
        {
          event: {
            name: 'Order Completed',
            where: { prop: 'price', op: 'gte', value: 100 },
            window: { last: '30d' },
          },
          count: { op: 'gte', value: 2 },
        },
        {
          not: {
            sequence: {
              window: { last: '7d' },
              steps: [
                { event: { name: 'Product\nAdded' }, as: 'a' },
                {
                  event: {
                    name: 'Order Completed',
                    where: { prop: 'cart_id', op: 'eq', ref: 'a.prop.cart_id' },
                  },
                  within: '1d',
                },
              ],
            },
          },
        },
        { trait: 'plan.tier', op: 'neq', value: 'free' },
      ],
    },
  ],
  [
    "event('A').where(NOT event('B').where(event('C').count() = 0).count() = 0).count() > 0",
    {
      sequence: {
        steps: [
          { event: { name: 'A' } },
          { event: { name: 'B' } },
          { event: { name: 'C' }, then: 'did_not' },
        ],
      },
    },
  ],
  ["trait('a').equals(literal(500))", { trait: 'a', op: 'eq', value: 500 }],
  ["trait('a') == 500", { trait: 'a', op: 'eq', value: 500 }],
  ["trait('a').differs('x')", { trait: 'a', op: 'neq', value: 'x' }],
  ["trait('a').at_most(trait('b'))", { trait: 'a', op: 'lte', ref: 'trait:b' }],
  [
    "trait('a').contains('shoes','shirts')",
    {
      any: [
        { trait: 'a', op: 'contains', value: 'shoes' },
        { trait: 'a', op: 'contains', value: 'shirts' },
      ],
    },
  ],
  ["trait('a').omits('shoes')", { trait: 'a', op: 'omits', value: 'shoes' }],
  ["trait('a').one_of('shoes','shirts')", { trait: 'a', op: 'one_of', value: ['shoes', 'shirts'] }],
  [
    "trait('a').before_date('2023-12-07T18:50:00Z')",
    { trait: 'a', op: 'before_date', value: '2023-12-07T18:50:00Z' },
  ],
  ["trait('a').within_last(7 days)", { trait: 'a', op: 'within_last', value: '7d' }],
  ["trait('a').after_next(7 days)", { trait: 'a', op: 'after_next', value: '7d' }],
  ["trait('a').absent()", { trait: 'a', op: 'absent' }],
  [
    "event('A').between(7 days, 10 days).count() = 0",
    {
      event: { name: 'A', window: { between_ago: ['7d', '10d'] } },
      count: { op: 'eq', value: 0 },
    },
  ],
  ["event('A').count() != 2", { not: { event: { name: 'A' }, count: { op: 'eq', value: 2 } } }],
  [
    "trait('a') = 1 OR trait('b') = 1 AND trait('c') = 1",
    {
      any: [
        { trait: 'a', op: 'eq', value: 1 },
        {
          all: [
            { trait: 'b', op: 'eq', value: 1 },
            { trait: 'c', op: 'eq', value: 1 },
          ],
        },
      ],
    },
  ],
  [
    "audience('vip') = false AND computed('orders') > trait('limit')",
    {
      all: [
        { not: { audience: 'vip', in: true } },
        { computed: 'orders', op: 'gt', ref: 'trait:limit' },
      ],
    },
  ],
])('%s is read', (text, json) => {
  expect(read(text)).toEqual(json)
  expect(read(printCondition(read(text)))).toEqual(json)
})

test.each([
  ["event('Shoes Bought').within(30 days).avg(property('spend'))", 'avg', { prop: 'spend' }],
  [
    "event('Shoes Bought').where( property('price') > 100 AND property('brand') = 'My Brand' ).min(property('spend'))",
    'min',
    { prop: 'spend' },
  ],
  ["event('Shoes Bought').within(30 days).first(property('spend'))", 'first', { prop: 'spend' }],
  ["event('Shoes Bought').within(30 days).mode(property('spend'), 2)", 'mode', { prop: 'spend' }],
  ["event('Shoes Bought').mode(property('spend'), 3)", 'mode', { prop: 'spend', min_frequency: 3 }],
  ["event('Shoes Bought').unique(property('spend'))", 'unique', { prop: 'spend' }],
])('%s is a computed trait', (text, reducer, made) => {
  const found = readMeasureText(text)
  expect(found).toMatchObject({ ok: true, json: { event: bought, [reducer]: made } })
  if (found.ok) expect(readMeasureText(printMeasure(found.json))).toEqual(found)
})

test.each([
  ["event('A').within(30 dys).count() >= 1", '30 |dys', 'expected seconds, minutes, hours, days'],
  ["event('A').within(0 days).count() >= 1", '(|0 days', 'expected a duration'],
  ["event('A').count() >= ", '>= |', 'expected a text in quotes, a number, true, false, trait'],
  ["event('A').count() => 1", '=|> 1', 'expected a text in quotes, a number'],
  [
    "event('A').where(NOT event('B').where(event('C').count() > 0).count() > 0).count() > 0",
    "NOT |event('B')",
    'only the last event',
  ],
  ["event('A').count() >= 1.5", '|1.5', 'expected a whole number from 0 to 1000'],
  ["event('A').within(3 days", 'days|', 'expected ")", found the end'],
  ["event('A').sources('x').count() >= 1", '|sources', 'expected one of where, within, between'],
  ["event('A')", "'A')|", 'expected a comparison'],
  [
    "event('A').within(7 days).timezone('Europe/Dublin').count() > 0",
    '|timezone',
    'no timezone(…) beside within(…)',
  ],
  [
    "event('A').between(1 day, 2 days).calendar_days(3).count() > 0",
    '|calendar_days',
    'no calendar_days(…) beside between(…)',
  ],
  [
    "event('A').after('2026-01-01').before('2026-01-01').count() > 0",
    '|before',
    'later than "after"',
  ],
  ["trait('id') = 9007199254740993", '|9007', 'told from 9007199254740992'],
  ["trait('a') = 1 trait('b') = 2", '1 |trait', 'expected AND, OR or the end'],
  ["(trait('a') = 1", '1|', 'expected AND, OR or ")"'],
  ["trait('a') is 1", '|is', 'expected a comparison'],
  ["trait('a').resembles('b')", '.|resembles', 'expected one of exists, absent'],
  ["trait('a).exists()", "(|'a)", "expected ' at the end"],
  ["trait('a') = 1 AND\n trait('b') matches 'x'", '|matches', 'expected a comparison'],
  ["trait('a').matches('(?=x)')", "(|'(?=x)'", 'looking ahead'],
  ["trait('a').before_date('yesterday')", "(|'yesterday'", 'expected a date'],
  ["trait('a') > 1 AND event('A').within(30 seconds).count() > 1", '|within', 'one minute'],
  [
    "event('A').where(property('price') >= computed('limit')).count() >= 1",
    ">= |computed('limit')",
    'compare a measure',
  ],
  [
    "sequence(event('A').where(property('price') >= trait('limit')), did event('B'))",
    ">= |trait('limit')",
    'not in a sequence',
  ],
  [
    "event('A').where(property('a') = property(parent: 'a')).count() > 0",
    '(|parent',
    'around this',
  ],
  ["event('A').where(trait('a') = 1).count() > 0", '(|trait', "expected property('…')"],
  [
    "event('A').where(event('B').count() >= 1 OR property('a') = 1).count() > 0",
    "(|event('B')",
    'joined to the rest by AND',
  ],
  ["event('A').where(event('B').count() >= 2).count() > 0", '|>= 2', 'happen or do not'],
  ["event('A').where(event('B').count() >= 1).count() >= 2", '|>= 2', 'happen or do not'],
  [
    "event('A').where(event('B').within(1 day).count() >= 1).count() >= 1",
    "(|event('B')",
    'within(parent: …)',
  ],
  // Over the users of an account, as others write it: here it says whose.
  ["ALL ( event('A').count() >= 1 AND trait('total_spend') > 200 )", 'ALL |(', 'expected "USERS"'],
  ["ALL NOT event('A').count() >= 1", '|NOT', 'expected "USERS"'],
  ["ANY event('A').count() >= 1", '|event', 'expected "USERS"'],
  ["sequence(event('A'))", '|sequence', '2 to 8 steps'],
  ["sequence(event('A'), did_not event('B'), did event('C'))", '|did_not', 'only the last step'],
  [
    "sequence(event('A') as a, did event('B').where(property('x') = property(b: 'x')))",
    "(|b: 'x'",
    'earlier step (a)',
  ],
  ['\u0000', '|\u0000', 'expected a word'],
])('%s is refused where it goes wrong', (text, marked, message) => {
  const found = readConditionText(text)
  if (found.ok) throw new Error('was accepted')
  const [problem] = found.problems
  expect(problem?.message).toContain(message)
  const at = text.lastIndexOf(marked.replace('|', '')) + marked.indexOf('|')
  const lines = text.slice(0, at).split('\n')
  expect(problem).toMatchObject({ line: lines.length, column: (lines.at(-1) ?? '').length + 1 })
})

test('a problem can be shown with a mark under its column', () => {
  const text = "trait('a') = 1\nOR trait('b') ~ 2"
  const found = readConditionText(text)
  if (found.ok) throw new Error('was accepted')
  expect(found.problems.map((problem) => pointAt(text, problem))).toEqual([
    "OR trait('b') ~ 2\n              ^",
  ])
})

test('deep brackets and long texts are refused, not run into', () => {
  for (const text of [`${'('.repeat(40_000)}`, `${'NOT '.repeat(12_000)}`, 'a'.repeat(50_001)])
    expect(readConditionText(text).ok).toBe(false)
})
