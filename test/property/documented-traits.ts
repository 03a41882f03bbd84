// Of traits: who is in, who leaves, and what a new definition changes.
import { after, did, has, type Scenario } from './documented-steps.ts'

export const ofTraits: readonly Scenario[] = [
  {
    about: 'a trait is so, and then is not',
    is: "trait('env') = 'test'",
    turns: {
      start: { says: [has('ann', { env: 'test' })], told: { ann: true } },
      soon: { says: [has('ann', { env: 'other' })], told: { ann: false } },
    },
  },
  {
    about: 'it is defined after the call',
    is: "trait('env') = 'never'",
    turns: {
      start: { says: [has('ann', { env: 'test' })] },
      soon: { becomes: "trait('env') = 'test'", told: { ann: true } },
      later: { says: [has('ann', { env: 'other' })], told: { ann: false } },
    },
  },
  {
    about: 'at least a number with a fraction, also where it stands in a text',
    is: "trait('age') >= 20.5",
    turns: {
      start: {
        says: [has('ann', { age: 21.5 }), has('ben', { age: '20.50' }), has('cat', { age: 'old' })],
        told: { ann: true, ben: true },
      },
      soon: { says: [has('ann', { age: 19.5 })], told: { ann: false } },
    },
  },
  {
    about: 'below a number',
    is: "trait('age') < 20.5",
    turns: {
      start: { says: [has('ann', { age: 19.5 }), has('ben', { age: 20.5 })], told: { ann: true } },
      soon: { says: [has('ann', { age: 21.5 })], told: { ann: false } },
    },
  },
  {
    about: 'a trait within a trait',
    is: "trait('a.b') = 'c'",
    turns: {
      start: {
        says: [has('ann', { a: { b: 'c' } }), has('ben', { 'a.b': 'c' })],
        told: { ann: true },
      },
    },
  },
  {
    about: 'a name with spaces, and one with a dot',
    is: "trait('value with spaces') = 'x' OR trait(['dotted.name']) = 'x'",
    turns: {
      start: {
        says: [has('ann', { 'value with spaces': 'x' }), has('ben', { 'dotted.name': 'x' })],
        told: { ann: true, ben: true },
      },
    },
  },
  {
    about: 'both of two, as they come and go',
    is: "trait('env') = 'test' AND trait('status') = 'running'",
    turns: {
      start: { says: [has('ann', { env: 'test' })] },
      soon: { says: [has('ann', { status: 'running' })], told: { ann: true } },
      later: { says: [has('ann', { status: 'stopped' })], told: { ann: false } },
    },
  },
  {
    about: 'calls that have nothing to do with it change nothing',
    is: "trait('env') = 'test' AND trait('status') = 'running'",
    turns: {
      start: { says: [has('ann', { env: 'test', status: 'running' })], told: { ann: true } },
      soon: { says: [has('ann', { unrelated: 1 }), did('ann', 'Anything', { env: 'prod' })] },
      later: { says: [has('ann', { env: 'test' })] },
    },
  },
  {
    about: 'either of one and both of two others',
    is: "trait('status') = 'onboarding' OR trait('status') = 'active' AND trait('atRisk') = 'true'",
    turns: {
      start: {
        says: [
          has('ann', { status: 'onboarding' }),
          has('ben', { status: 'active', atRisk: true }),
          has('cat', { status: 'active', atRisk: 'false' }),
        ],
        told: { ann: true, ben: true },
      },
    },
  },
  {
    about: 'a date of the last minutes, until they have passed',
    is: "trait('createdAt').within_last(5 minutes)",
    turns: {
      start: { says: [has('ann', { createdAt: after(0) })], told: { ann: true } },
      past: { told: { ann: false } },
    },
  },
  {
    about: 'a date of the last minutes, and something else',
    is: "trait('createdAt').within_last(5 minutes) AND trait('path') = 'val'",
    turns: {
      start: {
        says: [
          has('ann', { createdAt: after(0), path: 'val' }),
          has('ben', { createdAt: after(0) }),
        ],
        told: { ann: true },
      },
      past: { told: { ann: false } },
    },
  },
  {
    about: 'a date that is not before one still to come',
    is: `trait('createdAt').after_date('${after(5 * 3_600)}')`,
    turns: {
      start: { says: [has('ann', { createdAt: after(0) })] },
      evening: { says: [has('ben', { createdAt: after(7 * 3_600) })], told: { ben: true } },
    },
  },
  {
    about: 'has been so for a week, by the trait that says since when',
    is: "trait('status') = 'onboarding' AND trait('since').before_last(7 days)",
    turns: {
      start: { says: [has('ann', { status: 'onboarding', since: after(0) })] },
      week: { says: [has('ann', { status: 'onboarding' })], told: { ann: true } },
      after: {
        says: [has('ann', { status: 'active', since: after(9 * 86_400) })],
        told: { ann: false },
      },
    },
  },
  {
    about: 'has been so for less than a week',
    is: "trait('status') = 'onboarding' AND trait('since').within_last(7 days)",
    turns: {
      start: { says: [has('ann', { status: 'onboarding', since: after(0) })], told: { ann: true } },
      week: { says: [has('ann', { status: 'onboarding' })], told: { ann: false } },
    },
  },
  {
    about: 'is not there: an empty text is there, and nothing changes by other words',
    is: "trait('email').absent()",
    turns: {
      start: {
        says: [has('ann', { email: 'a@b.example' }), has('ben', { email: '' }), has('cat', {})],
        told: { cat: true },
      },
      soon: { becomes: "NOT trait('email').exists()" },
    },
  },
  {
    about: 'is not there, or empty',
    is: "NOT trait('email') != ''",
    turns: {
      start: {
        says: [has('ann', { email: 'a@b.example' }), has('ben', { email: '' }), has('cat', {})],
        told: { ben: true, cat: true },
      },
    },
  },
  {
    about: 'is there',
    is: "trait('env').exists()",
    turns: { start: { says: [has('ann', { env: 'x' }), has('ben', {})], told: { ann: true } } },
  },
  {
    about: 'is another, where it is at all',
    is: "trait('env') != 'prod'",
    turns: {
      start: {
        says: [has('ann', { env: 'test' }), has('ben', { env: 'prod' }), has('cat', {})],
        told: { ann: true },
      },
    },
  },
  {
    about: 'is another, or is not there',
    is: "NOT trait('env') = 'prod'",
    turns: {
      start: {
        says: [has('ann', { env: 'test' }), has('ben', { env: 'prod' }), has('cat', {})],
        told: { ann: true, cat: true },
      },
    },
  },
  {
    about: 'a list has it',
    is: "trait('items').contains_any('two')",
    turns: {
      start: {
        says: [
          has('ann', { items: ['one', 'two', 'three'] }),
          has('ben', { items: ['four', 'five'] }),
          has('cat', { others: ['two'] }),
          has('dan', { items: 'two' }),
        ],
        told: { ann: true },
      },
      soon: { says: [has('ann', { items: [] })], told: { ann: false } },
    },
  },
  {
    about: 'what says nothing of a trait leaves it as it was, and null takes it away',
    is: "trait('email').exists()",
    turns: {
      start: {
        says: [has('ann', { email: 'a@b.example' }, 100), has('ann', {}, 50)],
        told: { ann: true },
      },
      soon: { says: [has('ann', { email: null })], told: { ann: false } },
    },
  },
  {
    about: 'one of two traits, whichever is there',
    is: "trait('email1').exists() OR trait('email2').exists()",
    turns: {
      start: {
        says: [
          has('ann', { email1: 'a' }),
          has('ben', { email2: 'b' }),
          has('cat', { email3: 'c' }),
        ],
        told: { ann: true, ben: true },
      },
    },
  },
  {
    about: 'everyone',
    is: 'identified()',
    turns: {
      start: { says: [has('ann', {}), did('ben', 'Anything')], told: { ann: true, ben: true } },
      soon: { says: [{ type: 'track', event: 'Anything', anonymousId: 'door', ago: 100 }] },
      later: {
        says: [{ type: 'identify', userId: 'cat', anonymousId: 'door', ago: 100 }],
        told: { cat: true },
      },
    },
  },
]
