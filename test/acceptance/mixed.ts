// Twenty audiences of all kinds of conditions and three computed traits over purchases, and the calls that
// feed them.
import type { Audience, Call, Measure } from '../support/language.ts'
import { messageIdOf, type Scenario } from './expectation.ts'
import type { Purchase } from './purchases.ts'

const name = 'Order Completed'
const order = { name }
const last = (window: string) => ({ name, window: { last: window } })
const price = 'price'
const quantity = 'quantity'

const traits: readonly (Audience & { readonly condition: Measure })[] = [
  { kind: 'trait', key: 'spent_90d', condition: { event: last('90d'), sum: { prop: price } } },
  { kind: 'trait', key: 'last_price', condition: { event: order, last: { prop: price } } },
  {
    kind: 'trait',
    key: 'usual_size',
    condition: { event: last('180d'), mode: { prop: quantity } },
  },
]

const audiences: readonly Audience[] = [
  { key: 'repeat', condition: { event: last('90d'), count: { op: 'gte', value: 2 } } },
  {
    key: 'one_and_gone',
    condition: {
      all: [
        { event: order, count: { op: 'eq', value: 1 } },
        { event: last('180d'), count: { op: 'eq', value: 0 } },
      ],
    },
  },
  {
    key: 'big_ever',
    condition: {
      event: { name, where: { prop: price, op: 'gte', value: 100 } },
      count: { op: 'gte', value: 1 },
    },
  },
  {
    key: 'spenders',
    condition: { event: last('90d'), sum: { prop: price, op: 'gte', value: 99.9 } },
  },
  { key: 'dear', condition: { event: order, avg: { prop: price, op: 'gt', value: 30.005 } } },
  {
    key: 'never_cheap',
    condition: { event: last('180d'), min: { prop: price, op: 'gte', value: 12 } },
  },
  {
    key: 'was_big',
    condition: {
      event: { name, window: { between_ago: ['30d', '90d'] } },
      max: { prop: price, op: 'gt', value: 50 },
    },
  },
  {
    key: 'good_start',
    condition: { event: last('52w'), first: { prop: price, op: 'gte', value: 20 } },
  },
  {
    key: 'single_last',
    condition: { event: last('60d'), last: { prop: quantity, op: 'eq', value: 1 } },
  },
  {
    key: 'varied',
    condition: { event: last('26w'), distinct: { prop: quantity, op: 'gte', value: 3 } },
  },
  {
    key: 'had_five',
    condition: {
      event: last('90d'),
      unique: { prop: quantity, op: 'contains_any', value: ['5', 6] },
    },
  },
  {
    key: 'often_two',
    condition: {
      event: last('180d'),
      mode: { prop: quantity, min_frequency: 2, op: 'eq', value: '2' },
    },
  },
  {
    key: 'regular',
    timezone: 'America/New_York',
    condition: {
      event: { name, window: { calendar_days: 60 } },
      distinct_days: { op: 'gte', value: 2 },
    },
  },
  {
    key: 'growing',
    condition: {
      compare: [
        { event: last('30d'), sum: { prop: price } },
        { event: { name, window: { between_ago: ['30d', '60d'] } }, sum: { prop: price } },
      ],
      op: 'gt',
    },
  },
  {
    key: 'stepping_up',
    condition: {
      sequence: {
        window: { last: '90d' },
        steps: [
          { event: order, as: 'a' },
          {
            event: { name, where: { prop: price, op: 'gt', ref: 'a.prop.price' } as never },
            within: '30d',
          },
        ],
      },
    },
  },
  {
    key: 'lost_big',
    condition: {
      sequence: {
        window: { last: '180d' },
        settle: 'after_deadline',
        steps: [
          { event: { name, where: { prop: price, op: 'gte', value: 50 } } },
          { event: order, then: 'did_not', within: '60d' },
        ],
      },
    },
  },
  {
    key: 'fresh_gold',
    timezone: 'Europe/Dublin',
    condition: {
      all: [
        { trait: 'plan', op: 'one_of', value: ['gold', 'silver'] },
        { trait: 'joined', op: 'within_last', value: '30d' },
        { not: { trait: 'tags', op: 'contains_any', value: ['bulk'] } },
      ],
    },
  },
  {
    key: 'over_limit',
    condition: { computed: 'spent_90d', op: 'gt', ref: 'trait:limit' } as never,
  },
  {
    key: 'small_repeat',
    includeAnonymous: false,
    condition: {
      all: [
        { audience: 'repeat', in: true },
        { audience: 'big_ever', in: false },
      ],
    },
  },
  {
    key: 'lapsed_summer',
    timezone: 'Europe/Dublin',
    condition: {
      any: [
        {
          all: [
            {
              event: { name, window: { after: '1997-06-01', before: '1997-09-01' } },
              count: { op: 'gte', value: 1 },
            },
            { event: { name, window: { calendar_days: 90 } }, count: { op: 'eq', value: 0 } },
          ],
        },
        { trait: 'plan', op: 'absent' },
      ],
    },
  },
]

/** Their names are their keys. */
export const mixedScenario = (purchases: readonly Purchase[]): Scenario => ({
  definitions: [...traits, ...audiences].map((it) => ({ ...it, name: it.key })),
  calls: callsOf(purchases),
})

/** A purchase, and before a customer's first one what is known of them. */
const callsOf = (purchases: readonly Purchase[]): readonly Call[] => {
  const known = new Set<string>()
  return purchases.flatMap((purchase): readonly Call[] => {
    const { customer: userId, at, price: paid, quantity: bought } = purchase
    const base = { userId, anonymousId: null, previousId: null, timestamp: at, receivedAt: at }
    const messageId = messageIdOf(purchase)
    const properties = { price: paid, quantity: bought }
    const bodyless = { event: null, properties: {} }
    const tracked = { ...base, type: 'track', event: name, messageId, properties, traits: {} }
    if (known.has(userId)) return [tracked]
    known.add(userId)
    const joined = new Date(at).toISOString().slice(0, 10)
    const plan = bought > 2 ? 'gold' : 'silver'
    const tags = bought > 4 ? ['bulk', 'new'] : ['new']
    const written = { plan, joined, tags, limit: Math.round(paid * 2) }
    const traits = bought === 1 && paid < 12 ? { joined } : written
    return [
      { ...base, ...bodyless, type: 'identify', messageId: `${messageId}-who`, traits },
      tracked,
    ]
  })
}
