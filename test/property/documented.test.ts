// The examples that documents of other products give of their audience languages, through the whole line: who is
// in each, worked out by hand, is whom the engine tells of and whom the naive evaluator says.
import { expect, test } from 'vitest'
import { readConditionText, readMeasureText } from '../../src/domain/condition/text/read.ts'
import { answers } from '../oracle/oracle.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Audience, Call, Json } from '../support/language.ts'
import { openLine } from './audience-line.ts'

const { pool } = await cloneDatabase()

const day = 86_400_000
const now = Date.UTC(2026, 2, 31, 12)
let row = 0

const said = (daysAgo: number, over: Partial<Call>): Call => {
  const at = now - Math.round(daysAgo * day)
  const none = { userId: null, anonymousId: null, previousId: null, groupId: null, event: null }
  const body = { properties: {}, traits: {}, timestamp: at, receivedAt: at }
  return { type: 'track', messageId: `m${100 + row++}`, ...none, ...body, ...over }
}
const did = (userId: string, daysAgo: number, what: Pick<Call, 'event'> & Partial<Call>) =>
  said(daysAgo, { userId, ...what })
const is = (userId: string, traits: Call['traits']) =>
  said(60, { type: 'identify', userId, traits })
const worksAt = (userId: string, groupId: string) => said(60, { type: 'group', userId, groupId })
const bought = 'Shoes Bought'

const calls = [
  is('ann', { total_spend: 300, plan: 'pro' }),
  worksAt('ann', 'g1'),
  did('ann', 2, { event: bought, properties: { price: 150, spend: 150, brand: 'My Brand' } }),
  did('ann', 1, { event: 'Shoes Returned' }),
  is('ben', { total_spend: 100 }),
  worksAt('ben', 'g1'),
  did('ben', 10, { event: bought, properties: { price: 150, spend: 40 } }),
  did('ben', 4, { event: 'Shoes Returned' }),
  is('cat', { total_spend: 250 }),
  worksAt('cat', 'g2'),
  did('cat', 20, { event: bought, properties: { price: 50, spend: 20 } }),
  did('cat', 3, { event: bought, properties: { price: 50, spend: 20 } }),
  is('dan', { plan: 'free' }),
  worksAt('dan', 'g3'),
  did('dan', 40, { event: 'Signed In' }),
  is('eve', { total_spend: 500 }),
  did('eve', 3, { event: 'Product Added', properties: { cart_id: 'c1' } }),
  did('eve', 2.5, { event: 'Order Completed', properties: { cart_id: 'c1' } }),
  did('eve', 2, { event: 'Product Added', properties: { cart_id: 'c2' } }),
  // A visitor had ordered before, who turns out to be fay: that order is no answer to what she added later.
  said(5, { anonymousId: 'phone', event: 'Order Completed', properties: { cart_id: 'c3' } }),
  did('fay', 3, { event: 'Product Added', properties: { cart_id: 'c3' } }),
  said(2, { type: 'identify', userId: 'fay', anonymousId: 'phone' }),
  ...[1, 2, 3, 5, 6].map((ago) => did('gus', ago, { event: 'Signed In' })),
  did('hal', 50, { event: 'Signed In' }),
].sort((a, b) => a.receivedAt - b.receivedAt)

const everyone = ['ann', 'ben', 'cat', 'dan', 'eve', 'fay', 'gus', 'hal']
const without = (...ids: readonly string[]) => everyone.filter((id) => !ids.includes(id))

const conditions: readonly (readonly [string | Audience['condition'], readonly string[]])[] = [
  ["event('Shoes Bought').where( property('price') >= 100 ).within(7 days).count() >= 1", ['ann']],
  [
    `event('Shoes Bought').where( property('price') >= 100 AND
       event('Shoes Returned').within(parent: 5 days).count() >= 1 ).within(30 days).count() >= 1`,
    ['ann'],
  ],
  [
    "NOT ( event('Shoes Bought').count() >= 1 AND trait('total_spend') > 200 )",
    without('ann', 'cat'),
  ],
  ["ALL USERS ( event('Shoes Bought').count() >= 1 AND trait('total_spend') > 200 )", ['cat']],
  ["ALL USERS ( NOT event('Shoes Bought').count() >= 1 )", ['dan']],
  ["NONE USERS ( event('Shoes Bought').count() >= 1 )", ['dan']],
  ["ANY USERS ( event('Shoes Bought').count() >= 1 )", ['ann', 'ben', 'cat']],
  // Active 30 to 90 days ago, and not since.
  [
    "event('Signed In').between(30 days, 90 days).count() >= 1 AND event('Signed In').within(30 days).count() = 0",
    ['dan', 'hal'],
  ],
  // Left in the cart: also by who had ordered something before.
  [
    `event('Product Added').where(event('Order Completed').where(property('cart_id') = property(parent: 'cart_id'))
       .within(parent: 1 day).count() = 0).within(7 days).count() >= 1`,
    ['eve', 'fay'],
  ],
  // On five of the last seven days.
  [
    {
      event: { name: 'Signed In', window: { calendar_days: 7 } },
      distinct_days: { op: 'gte', value: 5 },
    },
    ['gus'],
  ],
  ["event('Shoes Bought').count() = 0", without('ann', 'ben', 'cat')],
  ["event('Shoes Bought').count() < 2", without('cat')],
  ["trait('total_spend').exists()", ['ann', 'ben', 'cat', 'eve']],
  ["trait('total_spend').absent()", ['dan', 'fay', 'gus', 'hal']],
  ["trait('plan') = 'pro'", ['ann']],
  ["trait('plan') != 'pro'", ['dan']],
  // For the first time ever within a week.
  [
    "event('Shoes Bought').within(7 days).count() >= 1 AND event('Shoes Bought').count() = event('Shoes Bought').within(7 days).count()",
    ['ann'],
  ],
]

const measures: readonly (readonly [string, { readonly [userId: string]: Json }])[] = [
  ["event('Shoes Bought').within(30 days).avg(property('spend'))", { ann: 150, ben: 40, cat: 20 }],
  [
    "event('Shoes Bought').where( property('price') > 100 AND property('brand') = 'My Brand' ).min(property('spend'))",
    { ann: 150 },
  ],
  [
    "event('Shoes Bought').within(30 days).first(property('spend'))",
    { ann: 150, ben: 40, cat: 20 },
  ],
  ["event('Shoes Bought').within(30 days).mode(property('spend'), 2)", { cat: '20' }],
]

const readBy = (read: typeof readConditionText, text: unknown): Audience['condition'] => {
  if (typeof text !== 'string') return text as Audience['condition']
  const found = read(text)
  if (!found.ok) throw new Error(`${text}: ${JSON.stringify(found.problems)}`)
  return found.json as unknown as Audience['condition']
}

const whole = { timezone: 'UTC', includeAnonymous: true }
const scenarios = [
  ...conditions.map(([text, members], at) => ({
    definition: {
      ...whole,
      kind: 'audience' as const,
      key: `a${at}`,
      condition: readBy(readConditionText, text),
    },
    expected: new Map<string, Json>(members.map((id) => [id, true])),
  })),
  ...measures.map(([text, values], at) => ({
    definition: {
      ...whole,
      kind: 'trait' as const,
      key: `t${at}`,
      condition: readBy(readMeasureText, text),
    },
    expected: new Map(Object.entries(values)),
  })),
]

test('documented examples have the members and values that their words say', async () => {
  const definitions = scenarios.map(({ definition }) => definition)
  const line = await openLine(pool, { start: now - 60 * day, definitions })
  try {
    await line.change(0)
    await line.say(calls)
    line.advanceTo(now)
    const told = await line.sync()
    for (const { definition, expected } of scenarios) {
      const { key, condition } = definition
      const lines = [...expected].map(([id, value]) => `${key} ${id} ${JSON.stringify(value)}`)
      const of = JSON.stringify(condition)
      expect(
        told.filter((it) => it.startsWith(`${key} `)),
        of,
      ).toEqual(lines.sort())
      const { named } = answers(calls, { ...definition, others: definitions }, now)
      expect(new Map([...named].sort()), of).toEqual(new Map([...expected].sort()))
    }
  } finally {
    await line.stop()
  }
})

test.each([
  "event('Shoes Bought').where(property('price') >= trait('avg_spend') AND event('Shoes Returned').within(parent: 5 days).count() >= 1).count() >= 1",
  "event('Shoes Bought').where(context('page.url') = '/').count() >= 1",
  "event('Shoes Bought').sources({exclude: 'QgRHeujRJBM9j18yChyC'}).count() >= 1",
  "event('Shoes Bought').max(property('spend') as string) >= 'a'",
])('what is documented and cannot be said is refused, and nothing of it dropped: %s', (text) => {
  expect(readConditionText(text)).toMatchObject({ ok: false, problems: [{ line: 1 }] })
})
