import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Filter, filterCall, filteringOf, filterKinds } from '../../src/domain/filter.ts'
import { callTypes, type JsonObject, type Message } from '../../src/domain/message.ts'
import { payloadOf } from '../../src/domain/payload.ts'

type Subject = Pick<Message, 'type' | 'event' | 'userId' | 'anonymousId'>

const aSubject = (over: Partial<Subject> = {}): Subject => ({
  type: 'track',
  event: 'Order Completed',
  userId: 'u1',
  anonymousId: null,
  ...over,
})

const apply = (filters: readonly Filter[], call: JsonObject, over: Partial<Subject> = {}) =>
  filterCall(filteringOf(1, filters), aSubject(over), call)

const isTaken = (filters: readonly Filter[], over: Partial<Subject> = {}, call: JsonObject = {}) =>
  'call' in apply(filters, call, over)

describe('which calls a rule is about', () => {
  const drops = (rule: object, over: Partial<Subject> = {}, call: JsonObject = {}) =>
    !isTaken([{ kind: 'drop', if: rule }], over, call)

  test('a rule by type is about calls of these types only', () => {
    expect(drops({ types: ['page', 'screen'] }, { type: 'page' })).toBe(true)
    expect(drops({ types: ['page', 'screen'] })).toBe(false)
  })

  test('a rule by event is about track calls of these very names only', () => {
    expect(drops({ events: ['Order Completed'] })).toBe(true)
    expect(drops({ events: ['order completed'] })).toBe(false)
    expect(drops({ events: ['Order Completed'] }, { type: 'page', event: null })).toBe(false)
  })

  test('a rule with where compares properties, and traits where the call has these', () => {
    const rule = { where: { prop: 'plan', op: 'eq', value: 'free' } }
    expect(drops(rule, {}, { properties: { plan: 'free' } })).toBe(true)
    expect(drops(rule, {}, { properties: { plan: 'pro' }, traits: { plan: 'free' } })).toBe(false)
    expect(drops(rule, { type: 'identify' }, { traits: { plan: 'free' } })).toBe(true)
    expect(drops(rule, { type: 'group' }, { traits: { plan: 'free' } })).toBe(true)
    expect(drops(rule)).toBe(false)
  })

  test('a page is compared by what its receiver would see: its name is among the properties', () => {
    const rule = { where: { prop: 'name', op: 'eq', value: 'Admin' } }
    expect(drops(rule, { type: 'page' }, { name: 'Admin', properties: {} })).toBe(true)
    expect(drops(rule, { type: 'page' }, { name: 'Admin', properties: { name: 'x' } })).toBe(false)
  })

  test('of a rule with several parts each must hold', () => {
    const rule = { types: ['track'], where: { prop: 'price', op: 'lt', value: 1 } }
    expect(drops(rule, {}, { properties: { price: 0 } })).toBe(true)
    expect(drops(rule, {}, { properties: { price: 1 } })).toBe(false)
    expect(drops(rule, { type: 'page' }, { properties: { price: 0 } })).toBe(false)
  })

  test('a rule that cannot be applied is never passed over', () => {
    expect(() => filteringOf(1, [{ kind: 'drop', if: { where: { like: 1 } } }])).toThrow()
    const unheardOf = { kind: 'hash', paths: ['traits.email'] } as unknown as Filter
    expect(() => filteringOf(1, [unheardOf])).toThrow()
  })
})

describe('sampling', () => {
  const users = Array.from({ length: 20_000 }, (_, at) => `user-${at}`)
  const takenOf = (destinationId: number, rate: number) => {
    const filtering = filteringOf(destinationId, [{ kind: 'sample', rate }])
    return users.filter((userId) => 'call' in filterCall(filtering, aSubject({ userId }), {}))
  }

  test('the share of users taken is the rate, and a user is taken always or never', () => {
    const taken = takenOf(1, 0.1)
    expect(taken.length / users.length).toBeCloseTo(0.1, 2)
    expect(takenOf(1, 0.1)).toEqual(taken)
    expect([takenOf(1, 0).length, takenOf(1, 1).length]).toEqual([0, users.length])
  })

  test('whoever is taken at a rate is taken at every higher one', () => {
    const higher = new Set(takenOf(1, 0.3))
    expect(takenOf(1, 0.1).every((user) => higher.has(user))).toBe(true)
  })

  test('two destinations do not take the same users', () => {
    const [one, other] = [takenOf(1, 0.5), new Set(takenOf(2, 0.5))]
    expect(one.filter((user) => other.has(user)).length / users.length).toBeCloseTo(0.25, 2)
  })

  test('the user id decides, and the anonymous id where there is none', () => {
    const filters: readonly Filter[] = [{ kind: 'sample', rate: 0.5 }]
    for (const id of users.slice(0, 200)) {
      const known = isTaken(filters, { userId: id })
      expect(isTaken(filters, { userId: id, anonymousId: `device of ${id}` })).toBe(known)
      expect(isTaken(filters, { userId: null, anonymousId: id })).toBe(known)
    }
  })

  test('calls that the rule is not about are all taken', () => {
    const filters: readonly Filter[] = [{ kind: 'sample', rate: 0, if: { types: ['page'] } }]
    expect(isTaken(filters)).toBe(true)
    expect(isTaken(filters, { type: 'page' })).toBe(false)
  })

  test('who is taken is the same in every release: replays depend on it', () => {
    expect(takenOf(7, 0.001).slice(0, 4)).toEqual([
      'user-499',
      'user-3164',
      'user-4691',
      'user-4838',
    ])
  })
})

describe('properties', () => {
  const call = {
    messageId: 'm1',
    properties: {
      price: 5,
      'Order Total': 7,
      coupon: { code: 'X', by: { mail: 'a@b.c' } },
      'a.b': 1,
      a: { b: 2, c: 3 },
      products: [{ sku: 1, price: 2 }, { sku: 3 }, 'loose', [{ sku: 4, price: 5 }]],
    },
    context: { ip: '1.2.3.4', app: { name: 'Shop' } },
  }
  const chosen = (kind: 'allow' | 'block', ...paths: string[]) => {
    const filtered = apply([{ kind, paths }], call)
    return 'call' in filtered ? filtered.call : null
  }

  test('a block list takes out what lies at its paths, and leaves the rest as it was', () => {
    expect(chosen('block', 'properties.coupon.by.mail', 'context.ip', 'properties.none')).toEqual({
      ...call,
      properties: { ...call.properties, coupon: { code: 'X', by: {} } },
      context: { app: { name: 'Shop' } },
    })
  })

  test('an allow list leaves only what lies at its paths, in all three sections', () => {
    expect(chosen('allow', 'properties.price', 'properties.coupon.by')).toEqual({
      messageId: 'm1',
      properties: { price: 5, coupon: { by: { mail: 'a@b.c' } } },
      context: {},
    })
  })

  test('a section can be named as a whole', () => {
    expect(chosen('allow', 'context')).toEqual({
      messageId: 'm1',
      properties: {},
      context: call.context,
    })
    expect(chosen('block', 'context')).toEqual({ ...call, context: {} })
  })

  test('a name may hold spaces, and dots: both readings of a dotted path are meant', () => {
    expect(chosen('allow', 'properties.Order Total', 'properties.a.b')).toMatchObject({
      properties: { 'Order Total': 7, 'a.b': 1, a: { b: 2 } },
    })
    const left = chosen('block', 'properties.a.b')?.['properties']
    expect(left).toMatchObject({ a: { c: 3 } })
    expect(left).not.toHaveProperty(['a.b'])
  })

  test('lists are walked through, lists in lists too', () => {
    expect(chosen('allow', 'properties.products.sku')).toMatchObject({
      properties: { products: [{ sku: 1 }, { sku: 3 }, [{ sku: 4 }]] },
    })
    expect(chosen('block', 'properties.products.sku')).toMatchObject({
      properties: { products: [{ price: 2 }, {}, 'loose', [{ price: 5 }]] },
    })
  })

  test('names that objects inherit are names like others', () => {
    const odd = JSON.parse('{"properties":{"constructor":1,"__proto__":{"x":2},"toString":3}}')
    const kept = (kind: 'allow' | 'block', path: string) => {
      const filtered = apply([{ kind, paths: [path] }], odd)
      return 'call' in filtered ? JSON.stringify(filtered.call) : null
    }
    expect(kept('block', 'properties.constructor')).toBe(
      '{"properties":{"__proto__":{"x":2},"toString":3}}',
    )
    expect(kept('allow', 'properties.__proto__.x')).toBe('{"properties":{"__proto__":{"x":2}}}')
    expect(kept('allow', 'properties.valueOf')).toBe('{"properties":{}}')
  })

  test("a page's name is a property like others: a rule against it is not got past", () => {
    const page = { name: 'Home', category: 'c', properties: { path: '/' } }
    const message = { type: 'page', userId: 'u1', previousId: null, groupId: null } as const
    const sent = (filter: Filter) => {
      const filtered = apply([filter], page, { type: 'page', event: null })
      const taken = 'call' in filtered ? filtered.call : {}
      return payloadOf({ ...message, event: null, timestamp: 0 }, taken)['properties']
    }
    expect(sent({ kind: 'block', paths: ['properties.name'] })).toEqual({
      path: '/',
      category: 'c',
    })
    expect(sent({ kind: 'allow', paths: ['properties.path'] })).toEqual({ path: '/' })
    expect(sent({ kind: 'allow', paths: ['properties.name'] })).toEqual({ name: 'Home' })
  })

  test('a call that no property rule is about is the very same call', () => {
    const filtered = apply([{ kind: 'block', paths: ['context'], if: { types: ['page'] } }], call)
    expect('call' in filtered && filtered.call).toBe(call)
  })
})

describe('the order of rules', () => {
  test('sample comes before drop, and both before properties are chosen', () => {
    const where = { prop: 'plan', op: 'eq', value: 'free' }
    const hides: Filter = { kind: 'block', paths: ['properties.plan'] }
    const drops: Filter = { kind: 'drop', if: { where } }
    const none: Filter = { kind: 'sample', rate: 0 }
    const call = { properties: { plan: 'free' } }
    expect(apply([hides, drops, none], call)).toEqual({ withheld: 'sampled' })
    expect(apply([hides, drops], call)).toEqual({ withheld: 'dropped' })
  })
})

describe('for any rules and calls', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'a.b', 'Order Total', '__proto__', 'constructor')
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, 1, 'x'),
      fc.array(tie('json'), { maxLength: 3 }),
      fc
        .array(fc.tuple(key, tie('json')), { maxLength: 4 })
        .map((entries) => Object.fromEntries(entries)),
    ),
  }))
  const object = fc.array(fc.tuple(key, json), { maxLength: 5 }).map(Object.fromEntries)
  const call = fc
    .record({ properties: object, traits: object, context: object }, { requiredKeys: [] })
    .map((sections) => ({ messageId: 'm1', ...sections })) as fc.Arbitrary<JsonObject>
  const path = fc
    .tuple(
      fc.constantFrom('properties', 'traits', 'context'),
      fc.array(fc.constantFrom('a', 'b', 'c', 'Order Total'), { maxLength: 3 }),
    )
    .map(([section, keys]) => [section, ...keys].join('.'))
  const types = fc.uniqueArray(fc.constantFrom(...callTypes), { minLength: 1 })
  const matching = fc.record({ types })
  const choosing = fc.record(
    {
      kind: fc.constantFrom('allow' as const, 'block' as const),
      paths: fc.array(path, { minLength: 1, maxLength: 4 }),
      if: matching,
    },
    { requiredKeys: ['kind', 'paths'] },
  )
  const sampling = fc.record({
    kind: fc.constant('sample' as const),
    rate: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  const dropping = fc.record({ kind: fc.constant('drop' as const), if: matching })
  const filters = fc.array(fc.oneof(choosing, choosing, sampling, dropping), {
    maxLength: 6,
  }) as fc.Arbitrary<readonly Filter[]>
  const subject = fc.record({
    type: fc.constantFrom(...callTypes),
    event: fc.constant(null),
    userId: fc.option(fc.string()),
    anonymousId: fc.string(),
  })
  const text = (filtered: object) => JSON.stringify(filtered)

  test('whatever order the rules are written in, the outcome is the same', () => {
    const bothWays = filters.chain((rules) =>
      fc.tuple(fc.constant(rules), fc.shuffledSubarray([...rules], { minLength: rules.length })),
    )
    fc.assert(
      fc.property(bothWays, subject, call, ([rules, shuffled], who, what) => {
        expect(text(apply(shuffled, what, who))).toBe(text(apply(rules, what, who)))
      }),
    )
  })

  test('the first kind that withholds a call is the one named', () => {
    fc.assert(
      fc.property(filters, subject, call, (rules, who, what) => {
        const outcome = apply(rules, what, who)
        const byKind = filterKinds.map((kind) =>
          apply(
            rules.filter((rule) => rule.kind === kind),
            what,
            who,
          ),
        )
        const [first] = byKind.filter((each) => 'withheld' in each)
        if (first) expect(outcome).toEqual(first)
        else expect('call' in outcome).toBe(true)
      }),
    )
  })

  test('the same call is decided the same way again, and the call itself is left alone', () => {
    fc.assert(
      fc.property(filters, subject, call, (rules, who, what) => {
        const before = text(what)
        expect(text(apply(rules, what, who))).toBe(text(apply(rules, what, who)))
        expect(text(what)).toBe(before)
      }),
    )
  })

  test('what was let through is let through again, unchanged', () => {
    fc.assert(
      fc.property(filters, subject, call, (rules, who, what) => {
        const once = apply(rules, what, who)
        if ('call' in once) expect(text(apply(rules, once.call, who))).toBe(text(once))
      }),
    )
  })

  test('an allow list and a block list of the same paths share a call out between them', () => {
    const leaves = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce((sum: number, inner) => sum + leaves(inner), 0)
        : 1
    fc.assert(
      fc.property(fc.array(path, { minLength: 1, maxLength: 4 }), call, (paths, what) => {
        const [kept, rest] = (['allow', 'block'] as const).map((kind) => {
          const filtered = apply([{ kind, paths }], what)
          return 'call' in filtered ? leaves(filtered.call) : 0
        }) as [number, number]
        // The message id is in both.
        expect(kept + rest).toBe(leaves(what) + 1)
      }),
    )
  })
})
