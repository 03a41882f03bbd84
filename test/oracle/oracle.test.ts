import { describe, expect, test } from 'vitest'
import { history } from '../acceptance/expectation.ts'
import type { Call, Condition, Json } from '../support/language.ts'
import { type Answers, changesBetween, withoutDuplicates } from '../support/told.ts'
import { answers } from './oracle.ts'
import { peopleOf } from './people.ts'
import { compares, valueAt } from './values.ts'

const hour = 3_600_000
const day = 24 * hour
const noon = Date.UTC(2024, 2, 1, 12)
let row = 0

const aCall = (over: Partial<Call>): Call => {
  const receivedAt = over.receivedAt ?? noon
  const none = { userId: null, anonymousId: null, previousId: null, event: null }
  const body = { properties: {}, traits: {}, timestamp: receivedAt, receivedAt }
  return { type: 'track', messageId: `m${row++}`, ...none, ...body, ...over }
}

const order = (userId: string, receivedAt: number, price = 10) =>
  aCall({ userId, event: 'Order Completed', properties: { price }, receivedAt })

const orders = (over: object, op = 'gte', value = 1): Condition => ({
  event: { name: 'Order Completed', ...over },
  count: { op, value },
})

const members = (log: readonly Call[], condition: Condition, at: number) =>
  [...answers(log, { key: '', condition }, at).named.keys()].sort()

describe('windows', () => {
  test.each([
    // W = 90 d moves on a grid of 1 h: an order at 12:30 counts as of its hour, 12.
    ['90d', noon + hour / 2, noon + 90 * day - 1, true],
    ['90d', noon + hour / 2, noon + 90 * day, false],
    ['90d', noon - 1, noon + 90 * day - hour - 1, true],
    ['90d', noon - 1, noon + 90 * day - hour, false],
    // W = 180 d moves on days of UTC.
    ['180d', noon, noon + 180 * day - 12 * hour - 1, true],
    ['180d', noon, noon + 180 * day - 12 * hour, false],
    // W = 48 h moves on minutes, W = 1 h on seconds.
    ['48h', noon + 59_999, noon + 48 * hour - 1, true],
    ['48h', noon + 59_999, noon + 48 * hour, false],
    ['1h', noon + 999, noon + hour - 1, true],
    ['1h', noon + 999, noon + hour, false],
  ])('%s with an event at %i is as worked out at %i', (...row) => {
    const [last, te, at, member] = row
    expect(members([order('u', te)], orders({ window: { last } }), at)).toEqual(member ? ['u'] : [])
  })

  test('a chosen grid replaces the default', () => {
    const condition = orders({ window: { last: '90d', grid: '1d' } })
    expect(members([order('u', noon)], condition, noon + 90 * day - 12 * hour - 1)).toEqual(['u'])
    expect(members([order('u', noon)], condition, noon + 90 * day - 12 * hour)).toEqual([])
  })

  test('an event of the future happens when it is received, one before 1970 too', () => {
    const condition = orders({ window: { last: '1h' } })
    for (const timestamp of [noon + 5 * day, -1]) {
      const log = [aCall({ userId: 'u', event: 'Order Completed', timestamp })]
      expect(members(log, condition, noon + hour - 1)).toEqual(['u'])
      expect(members(log, condition, noon + hour)).toEqual([])
    }
  })

  test('a late event counts from its receipt on, at its own time', () => {
    const log = [
      aCall({ userId: 'u', event: 'Order Completed', timestamp: noon - day, receivedAt: noon }),
    ]
    const condition = orders({ window: { last: '48h' } })
    const instants = [noon - 1, noon, noon + day - 1, noon + day]
    expect(instants.map((at) => members(log, condition, at))).toEqual([[], ['u'], ['u'], []])
  })
})

describe('counts', () => {
  const log = [order('u1', noon), order('u2', noon), order('u2', noon), order('u3', noon, 200)]
  log.push(aCall({ userId: 'u4', type: 'page' }))
  test.each([
    [orders({}), ['u1', 'u2', 'u3']],
    [orders({}, 'gte', 2), ['u2']],
    [orders({}, 'gt', 1), ['u2']],
    [orders({}, 'eq', 1), ['u1', 'u3']],
    [orders({}, 'lte', 1), ['u1', 'u3', 'u4']],
    [orders({}, 'lt', 1), ['u4']],
    [orders({}, 'eq', 0), ['u4']],
    [orders({ where: { prop: 'price', op: 'gte', value: 200 } }), ['u3']],
    [{ not: orders({}) }, ['u4']],
    [{ all: [orders({}), { not: orders({}, 'gte', 2) }] }, ['u1', 'u3']],
    [{ any: [orders({}, 'gte', 2), { not: orders({}) }] }, ['u2', 'u4']],
  ] as readonly [Condition, string[]][])('%j holds for %j', (condition, expected) => {
    expect(members(log, condition, noon)).toEqual(expected)
  })

  test('nobody is a member before they were seen, not even of a negation', () => {
    expect(members([order('u', noon)], { not: orders({}, 'gte', 2) }, noon - 1)).toEqual([])
  })
})

describe('values', () => {
  test.each([
    [{ op: 'eq', value: 5 }, '5', true],
    [{ op: 'eq', value: '5' }, 5, false],
    [{ op: 'eq', value: 5 }, '05', false],
    [{ op: 'gt', value: 5 }, '5.5', true],
    [{ op: 'gt', value: '5' }, 6, true],
    [{ op: 'gt', value: 5 }, 'six', false],
    [{ op: 'lt', value: 'b' }, 'a', true],
    [{ op: 'lt', value: '\u{ffff}' }, '\u{10000}', false],
    [{ op: 'eq', value: true }, 'true', true],
    [{ op: 'eq', value: 'false' }, false, true],
    [{ op: 'neq', value: 'free' }, 'paid', true],
    [{ op: 'neq', value: 'free' }, undefined, false],
    [{ op: 'neq', value: 'free' }, null, false],
    [{ op: 'none_of', value: ['a'] }, undefined, false],
    [{ op: 'one_of', value: ['a', 5] }, '5', true],
    [{ op: 'absent' }, undefined, true],
    [{ op: 'absent' }, null, true],
    [{ op: 'exists' }, '', true],
    [{ op: 'contains', value: 'ok' }, ['no', 'book'], true],
    [{ op: 'omits', value: 'ok' }, ['no', 'book'], false],
    [{ op: 'starts_with', value: 'É', ci: true }, 'e\u0301te', true],
    [{ op: 'ends_with', value: 'x' }, 'yx', true],
    [{ op: 'contains_any', value: ['a', 'b'] }, ['b'], true],
    [{ op: 'contains_all', value: ['a', 'b'] }, ['b'], false],
    [{ op: 'contains_none', value: ['a', 'b'] }, ['c'], true],
  ] as const)('%j of %j is %s', (comparison, found, expected) => {
    expect(compares(comparison, found as Json | undefined)).toBe(expected)
  })

  test('a path walks objects at its dots, or by its keys', () => {
    const root = { plan: { tier: 'gold' }, 'plan.tier': 'odd', list: [1] }
    expect(valueAt(root, 'plan.tier')).toBe('gold')
    expect(valueAt(root, ['plan.tier'])).toBe('odd')
    expect(valueAt(root, 'list.0')).toBeUndefined()
    expect(valueAt(root, 'toString')).toBeUndefined()
  })
})

describe('traits', () => {
  const tier = (value: string): Condition => ({ trait: 'tier', op: 'eq', value })
  const says = (traits: Call['traits'], timestamp: number, receivedAt = noon) =>
    aCall({ type: 'identify', userId: 'u', traits, timestamp, receivedAt })

  test('the newest write of each key wins, whatever the order of arrival', () => {
    const log = [says({ tier: 'gold', a: 1 }, noon - 10), says({ tier: 'free' }, noon - 20)]
    expect(members(log, tier('gold'), noon)).toEqual(['u'])
    expect(members(log, { trait: 'a', op: 'eq', value: 1 }, noon)).toEqual(['u'])
  })

  test('null deletes a trait and an older write does not bring it back', () => {
    const log = [says({ tier: null }, noon - 10), says({ tier: 'gold' }, noon - 20)]
    expect(members(log, { trait: 'tier', op: 'absent' }, noon)).toEqual(['u'])
  })
})

describe('people', () => {
  test('an identify joins the anonymous visitor to the user, with all they did', () => {
    const log = [
      aCall({ anonymousId: 'a', event: 'Order Completed' }),
      aCall({ type: 'identify', anonymousId: 'a', userId: 'u' }),
      aCall({ anonymousId: 'a', event: 'Order Completed' }),
    ]
    expect(members(log.slice(0, 1), orders({}), noon)).toEqual([])
    expect(members(log, orders({}, 'eq', 2), noon)).toEqual(['u'])
  })

  test('a visitor of one user is not joined to the next one who signs in', () => {
    const log = [
      aCall({ type: 'identify', anonymousId: 'a', userId: 'u1' }),
      aCall({ type: 'identify', anonymousId: 'a', userId: 'u2' }),
      aCall({ anonymousId: 'a', event: 'Order Completed' }),
    ]
    expect(members(log, orders({}), noon)).toEqual(['u1'])
    expect(peopleOf(log)).toHaveLength(2)
  })

  test('an alias joins two users under the new id, later calls of the old one included', () => {
    const log = [
      order('old', noon),
      aCall({ type: 'alias', userId: 'new', previousId: 'old' }),
      order('old', noon),
    ]
    const [before, after] = [log.slice(0, 1), log].map(
      (it) => answers(it, { key: 'a', condition: orders({}) }, noon).named,
    )
    expect(members(log, orders({}, 'eq', 2), noon)).toEqual(['new'])
    expect(changesBetween({ key: 'a' }, before as Answers, after as Answers)).toEqual([
      { userId: 'new', audience: 'a', value: true },
      { userId: 'old', audience: 'a', value: false },
    ])
  })

  test('an alias from an anonymous id takes the visitor over', () => {
    const log = [
      aCall({ anonymousId: 'a', event: 'Order Completed' }),
      aCall({ type: 'alias', userId: 'u', previousId: 'a' }),
    ]
    expect(members(log, orders({}), noon)).toEqual(['u'])
  })

  test.each(['', '0', '00-00', '-1', 'null', 'anonymous'])('%j names nobody', (id) => {
    const log = [
      aCall({ type: 'identify', anonymousId: 'a', userId: id, event: null }),
      order(id, noon),
    ]
    expect(members(log, { not: orders({}, 'gte', 9) }, noon)).toEqual([])
  })

  test('who is deleted has done nothing before, and late calls of any of their ids say nothing', () => {
    const deleted = {
      ...aCall({ type: 'delete', userId: 'u', event: null }),
      receivedAt: noon + hour,
    }
    const log = [
      order('u', noon),
      aCall({ type: 'identify', userId: 'u', anonymousId: 'a', event: null }),
      deleted,
      // An import of the past, by the other id.
      aCall({
        anonymousId: 'a',
        event: 'Order Completed',
        timestamp: noon - 2 * day,
        receivedAt: noon + 2 * hour,
      }),
    ]
    const never = { not: orders({}) }
    expect(members(log, orders({}), noon + 2 * hour)).toEqual([])
    expect(peopleOf(log)).toEqual([])
    expect(
      members([...log, order('u', noon + 2 * hour)], orders({}, 'eq', 1), noon + 3 * hour),
    ).toEqual(['u'])
    expect(members(log, never, noon + 2 * hour)).toEqual([])
  })

  test('a repeated id within 24 h of any earlier one is a duplicate', () => {
    const times = [0, 1, day, day + 1, 2 * day + 1, 3 * day + 2]
    const log = times.map((time) => aCall({ messageId: 'same', receivedAt: noon + time }))
    const kept = withoutDuplicates(log).map(({ receivedAt }) => receivedAt - noon)
    expect(kept).toEqual([0, 2 * day + 1, 3 * day + 2])
  })
})

describe('history', () => {
  const log = [order('u1', noon), order('u1', noon + day, 150), order('u2', noon + 2 * day)]
  const instants = Array.from({ length: 200 * 8 }, (_, index) => noon + index * 3 * hour)
  const audiences = [
    { key: 'twice', condition: orders({ window: { last: '90d' } }, 'gte', 2) },
    {
      key: 'lapsed',
      condition: {
        all: [orders({}, 'eq', 1), { not: orders({ window: { last: '180d' } }) }],
      } as Condition,
    },
    { key: 'big', condition: orders({ where: { prop: 'price', op: 'gte', value: 100 } }) },
  ]

  const definitions = audiences.map((it) => ({ ...it, name: it.key }))

  test('each sync says who came and who went, worked out by hand', () => {
    const said = history({ calls: log, definitions }, instants).flatMap((told, index) =>
      told.map(
        (it) => `${(instants[index] as number) - noon} ${it.audience} ${it.userId} ${it.value}`,
      ),
    )
    expect(said).toEqual([
      `${day} twice u1 true`,
      `${day} big u1 true`,
      // The first of the two orders leaves the window of whole hours 90 days later.
      `${90 * day} twice u1 false`,
      // u2 ordered on day 2 at noon: 180 whole days later the day begins 12 h before noon.
      `${182 * day - 12 * hour} lapsed u2 true`,
    ])
  })

  test('it says what the differences of full evaluations say', () => {
    const few = instants.filter((_, index) => index % 16 === 3)
    const said = history({ calls: log, definitions }, few)
    for (const asked of audiences) {
      let before: Answers = new Map()
      for (const [index, at] of few.entries()) {
        const after = answers(log, asked, at).named
        expect(said[index]?.filter(({ audience }) => audience === asked.key)).toEqual(
          changesBetween(asked, before, after),
        )
        before = after
      }
    }
  })

  test('it refuses a log in which somebody changes identity', () => {
    const alias = aCall({ type: 'alias', userId: 'u', previousId: 'p' })
    expect(() => history({ calls: [alias], definitions }, instants)).toThrow('use answers')
  })
})
