// Of events: how often, how long ago, with which properties, and which was the last.
import { did, didAgo, has, type Saying, type Scenario } from './documented-steps.ts'

const t = 'Tested'
const twice = (userId: string): readonly Saying[] => [didAgo(150)(userId, t), did(userId, t)]
const subscription = (who: object, action: string): Saying => ({
  type: 'track',
  event: 'Subscription Changed',
  properties: { subscription: 'news', action },
  ago: 100,
  ...who,
})

const howOften: readonly Scenario[] = [
  {
    about: 'twice at least, by a name with spaces',
    is: "event('test event name').count() >= 2",
    turns: {
      start: {
        says: [
          ...[150, 100].map((ago) => didAgo(ago)('ann', 'test event name')),
          did('ben', 'test event name'),
          did('cat', 'test event'),
        ],
        told: { ann: true },
      },
    },
  },
  {
    about: 'never',
    is: "event('Tested').count() = 0",
    turns: {
      start: { says: [did('ann', 'Other'), did('ben', t)], told: { ann: true } },
      soon: {},
      later: { says: [did('ann', t)], told: { ann: false } },
    },
  },
  {
    about: 'not in the last minutes',
    is: "event('Tested').within(5 minutes).count() = 0",
    turns: {
      start: { says: [did('ann', 'Other'), did('ben', t)], told: { ann: true } },
      past: { told: { ben: true } },
    },
  },
  {
    about: 'fewer than two',
    is: "event('Tested').count() < 2",
    turns: {
      start: {
        says: [did('ann', 'Other'), did('ben', t), did('cat', t), did('cat', t)],
        told: { ann: true, ben: true },
      },
    },
  },
  {
    about: 'fewer than one in the last minutes',
    is: "event('Tested').within(5 minutes).count() < 1",
    turns: {
      start: { says: [did('ann', 'Other'), did('ben', t)], told: { ann: true } },
      past: { told: { ben: true } },
    },
  },
  {
    about: 'fewer than two in the last minutes',
    is: "event('Tested').within(5 minutes).count() < 2",
    turns: {
      start: { says: [did('ann', 'Other'), ...twice('ben')], told: { ann: true } },
      past: { told: { ben: true } },
    },
  },
  {
    about: 'in the last minutes: too old, then in, out when they have passed, and in once more',
    is: "event('Tested').within(5 minutes).count() >= 1",
    turns: {
      start: { says: [didAgo(360_000)('ann', t), has('ann', {})] },
      soon: { says: [did('ann', t)], told: { ann: true } },
      past: { told: { ann: false } },
      again: { says: [did('ann', t)], told: { ann: true } },
      evening: { told: { ann: false } },
    },
  },
  {
    about: 'a trait, and an event',
    is: "trait('env') = 'test' AND event('Tested').count() >= 1",
    turns: {
      start: {
        says: [has('ann', { env: 'test' }), did('ann', t), did('ben', t)],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a trait, and an event of the last minutes',
    is: "trait('env') = 'test' AND event('Tested').within(5 minutes).count() >= 1",
    turns: {
      start: {
        says: [has('ann', { env: 'test' }), did('ann', t), did('ben', t)],
        told: { ann: true },
      },
      past: { told: { ann: false } },
    },
  },
  {
    about: 'a trait, and no event of the last minutes',
    is: "trait('env') = 'test' AND event('Tested').within(5 minutes).count() = 0",
    turns: {
      start: {
        says: [
          has('ann', { env: 'test' }),
          has('ben', { env: 'test' }),
          did('ben', t),
          has('cat', { env: 'prod' }),
        ],
        told: { ann: true },
      },
      past: { told: { ben: true } },
    },
  },
  {
    about: 'events of one beginning, each named, twice together',
    is: `event('TEST_1').count() >= 2 OR event('TEST_2').count() >= 2
      OR event('TEST_1').count() >= 1 AND event('TEST_2').count() >= 1`,
    turns: {
      start: {
        says: [
          did('ann', 'TEST_1'),
          did('ann', 'TEST_2'),
          did('ben', 'TEST_2'),
          did('cat', 'TEST'),
        ],
        told: { ann: true },
      },
    },
  },
  {
    about: 'on fewer than two days, which nobody is who never did',
    is: "event('Tested').distinct_days() < 2",
    turns: {
      start: { says: [has('ann', {}), did('ben', t)], told: { ben: true } },
      week: { says: [did('ben', t)], told: { ben: false } },
    },
  },
  {
    about: 'as often as with different things, which nothing is not',
    is: "event('Tested').count() = event('Tested').distinct(property('sku'))",
    turns: {
      start: {
        says: [has('ann', {}), did('ben', t, { sku: 1 }), did('cat', t)],
        told: { ben: true },
      },
      soon: { says: [did('ben', t, { sku: 1 })], told: { ben: false } },
    },
  },
  {
    about: 'a higher number from now on',
    is: "event('Tested').count() >= 1",
    turns: {
      start: { says: [did('ann', t)], told: { ann: true } },
      soon: { becomes: "event('Tested').count() >= 2", told: { ann: false } },
      later: { says: [did('ann', t)], told: { ann: true } },
    },
  },
  {
    about: 'only of the last minutes from now on',
    is: "event('Tested').count() >= 1",
    turns: {
      start: { says: [did('ann', t)], told: { ann: true } },
      past: { becomes: "event('Tested').within(5 minutes).count() >= 1", told: { ann: false } },
      again: { says: [did('ann', t)], told: { ann: true } },
      evening: { told: { ann: false } },
    },
  },
]

const withProperties: readonly Scenario[] = [
  {
    about: 'a property of at least a number',
    is: "event('Tested').where(property('age') >= 20).count() >= 1",
    turns: {
      start: {
        says: [did('ann', t, { age: 22 }), did('ben', t, { age: 18 })],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a property below a number',
    is: "event('Tested').where(property('age') < 20).count() >= 1",
    turns: {
      start: {
        says: [did('ann', t, { age: 22 }), did('ben', t, { age: 18 })],
        told: { ben: true },
      },
    },
  },
  {
    about: 'a property that is so',
    is: "event('Tested').where(property('status') = 'active').count() >= 1",
    turns: {
      start: {
        says: [
          did('ann', t, { status: 'active' }),
          did('ben', t, { status: 'inactive' }),
          did('cat', t),
          did('dan', 'Other', { status: 'active' }),
        ],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a property that is there',
    is: "event('Tested').where(property('status').exists()).count() >= 1",
    turns: {
      start: {
        says: [did('ann', t, { status: 'x' }), did('ben', t, { status: null }), did('cat', t)],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a property deep within',
    is: "event('Tested').where(property('one.two.three') = 'x').count() >= 1",
    turns: {
      start: {
        says: [did('ann', t, { one: { two: { three: 'x' } } }), did('ben', t, { one: 'x' })],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a mail of one template was opened',
    is: "event('Email Opened').where(property('templateId') = 'welcome').count() >= 1",
    turns: {
      start: {
        says: [
          did('ann', 'Email Opened', { templateId: 'welcome', messageId: 'm' }),
          did('ben', 'Email Opened', { templateId: 'other', messageId: 'm' }),
        ],
        told: { ann: true },
      },
    },
  },
]

/** The last such event is one that … */
const last = (such: string, one: string) =>
  `sequence(event('Tested').where(${such} AND ${one}), did_not event('Tested').where(${such}))`

const whichWasLast: readonly Scenario[] = [
  {
    about: 'the last of a kind is of a group',
    is: last("property('kind') = 'k'", "property('group') = 'first'"),
    turns: {
      start: {
        says: [
          did('ann', t, { kind: 'k', group: 'first' }),
          did('ben', 'Other', { kind: 'k', group: 'first' }),
          did('cat', t, { kind: 'x', group: 'first' }),
          did('dan', t, { kind: 'k', group: 'second' }),
        ],
        told: { ann: true },
      },
      soon: { says: [did('ann', t, { kind: 'x', group: 'second' })] },
      later: { says: [did('ann', t, { kind: 'k' })], told: { ann: false } },
    },
  },
  {
    about: 'the last of a kind has a group',
    is: last("property('kind').exists()", "property('group').exists()"),
    turns: {
      start: {
        says: [
          did('ann', t, { kind: 'k', group: 'first' }),
          did('ben', t, { kind: 'k' }),
          did('cat', t, { group: 'first' }),
          did('dan', t),
        ],
        told: { ann: true },
      },
    },
  },
  {
    about: 'the last of no kind has no group',
    is: last("property('kind').absent()", "property('group').absent()"),
    turns: {
      start: {
        says: [
          did('ann', t, { kind: 'k', group: 'first' }),
          did('ben', 'Other'),
          did('cat', t, { group: 'first' }),
          did('dan', t),
        ],
        told: { dan: true },
      },
    },
  },
  {
    about: 'the last number there was',
    is: "event('Tested').last(property('count')) < 10",
    turns: {
      start: {
        says: [did('ann', t, { count: 9 }), did('ben', t), did('cat', t, { count: 11 })],
        told: { ann: true },
      },
    },
  },
  {
    about: 'the last is a number: one in a text of the condition is none',
    is: "event('Tested').last(property('count')) = 10",
    turns: {
      start: {
        says: [did('ann', t, { count: 10 }), did('ben', t), did('cat', t, { count: '11' })],
        told: { ann: true },
      },
      soon: { becomes: "event('Tested').last(property('count')) = '10'", told: { ann: false } },
    },
  },
  {
    about: 'put in and taken out by hand, and the list begun anew',
    is: "event('Listed').where(property('list') = 1).last(property('in')) = true",
    turns: {
      start: {
        says: [
          did('ann', 'Listed', { list: 1, in: true }),
          did('cat', 'Listed', { list: 1, in: false }),
        ],
        told: { ann: true },
      },
      soon: {
        becomes: "event('Listed').where(property('list') = 2).last(property('in')) = true",
        says: [did('ben', 'Listed', { list: 2, in: true })],
        told: { ann: false, ben: true },
      },
    },
  },
  {
    about: 'subscribed unless they said no',
    is: "NOT event('Subscription Changed').where(property('subscription') = 'news').last(property('action')) = 'out'",
    turns: {
      start: { says: [has('ann', {})], told: { ann: true } },
      soon: { says: [subscription({ userId: 'ann' }, 'out')], told: { ann: false } },
      later: { says: [subscription({ userId: 'ann' }, 'in')], told: { ann: true } },
    },
  },
  {
    about: 'subscribed as a visitor, and told of once there is a user',
    is: "event('Subscription Changed').where(property('subscription') = 'news').last(property('action')) = 'in'",
    turns: {
      start: { says: [{ type: 'identify', anonymousId: 'tab', traits: { x: 1 }, ago: 100 }] },
      soon: { says: [subscription({ anonymousId: 'tab' }, 'in')] },
      later: {
        says: [{ type: 'identify', anonymousId: 'tab', userId: 'ann', ago: 100 }],
        told: { ann: true },
      },
    },
  },
]

const values: readonly Scenario[] = [
  {
    about: 'the value of the last event that has one',
    is: "event('Registered').last(property('status'))",
    turns: {
      start: {
        says: [
          didAgo(300)('ann', 'Registered', { status: null }),
          didAgo(200)('ann', 'Registered', { status: 'lead' }),
          didAgo(100)('ann', 'Registered', { status: null }),
        ],
        told: { ann: 'lead' },
      },
    },
  },
  {
    about: 'a value deep within the last event of one template',
    is: "event('Sent').where(property('template') = 'mine').last(property('variant.response.body.status'))",
    turns: {
      start: {
        says: [
          ...(['Other', 'Sent', 'Sent'] as const).map((name, at) =>
            didAgo(400 + 100 * at)('ann', name, {
              template: at === 1 ? 'wrong' : 'mine',
              variant: { response: { body: { status: `status${at}` } } },
            }),
          ),
        ],
        told: { ann: 'status2' },
      },
    },
  },
  {
    about: 'another property from now on',
    is: "event('Tested').last(property('one'))",
    turns: {
      start: { says: [did('ann', t, { one: 'a' })], told: { ann: 'a' } },
      soon: { becomes: "event('Tested').last(property('two'))", told: { ann: null } },
      later: { says: [did('ann', t, { two: 'b' })], told: { ann: 'b' } },
    },
  },
  {
    about: 'an object is no value; what is in it is',
    is: "event('Tested').last(property('whole'))",
    turns: {
      start: { says: [did('ann', t, { whole: { part: 'p' } })] },
      soon: { becomes: "event('Tested').last(property('whole.part'))", told: { ann: 'p' } },
    },
  },
  {
    about: 'a visitor and a user who turn out to be one',
    is: "event('Tested').count()",
    turns: {
      start: {
        says: [did('ann', t), { type: 'track', anonymousId: 'tab', event: t, ago: 100 }],
        told: { ann: 1 },
      },
      soon: {
        says: [{ type: 'identify', anonymousId: 'tab', userId: 'ann', ago: 100 }],
        told: { ann: 2 },
      },
    },
  },
  {
    about: 'how many different ones: of none there is no number',
    is: "event('Tested').within(5 minutes).distinct(property('sku'))",
    turns: {
      start: {
        says: [did('ann', t, { sku: ['a', 'b'] }), did('ann', t, { sku: 'a' }), has('ben', {})],
        told: { ann: 2 },
      },
      past: { told: { ann: null } },
    },
  },
]

export const ofEvents: readonly Scenario[] = [
  ...howOften,
  ...withProperties,
  ...whichWasLast,
  ...values,
]
