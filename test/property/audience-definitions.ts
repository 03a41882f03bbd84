// Audiences and computed traits of every shape, over few events, properties and traits, so that they often
// hold and often turn over.
import fc from 'fast-check'
import type { Audience, Condition, Filter, Json, Measure, OfUsers } from '../support/language.ts'

export const eventNames = ['Ordered', 'Seen', 'Left'] as const
export const zones = ['UTC', 'Europe/Dublin', 'America/St_Johns'] as const

/** Spans that windows, dates and steps have their edges at. */
export const spans = ['1m', '1h', '2h', '1d', '2d', '3d', '7d', '30d'] as const

export const anyValue: fc.Arbitrary<Json | undefined> = fc.constantFrom<Json | undefined>(
  ...[undefined, null, '', '5', 5, 5, 5.5, 0.1, 0.2, -3, 1e-7, 12_345_678_901.125, true, 'true'],
  ...['a', 'é', 'e\u0301', '\u{1F600}', '\uFB00', '5.0', ['5', 'a'], [5, 'b'], [], { in: 5 }],
)
export const anyDate: fc.Arbitrary<Json | undefined> = fc.constantFrom<Json | undefined>(
  ...['2026-01-12', '2026-03-29', '2026-03-30T00:30:00+01:00', '2026-10-25', '2028-02-29'],
  ...['2026-02-30', '2026-01-10T08:00', '2026-10-26T00:00:00Z', 5, null, 'soon'],
)

const one = fc.constantFrom
const orderOps = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte'] as const
const order = one(...orderOps)
const literal = one<Json>(5, '5', 5.5, 'a', true, 'true', '\u00E9', 0.3, -3)
const number = one(0, 1, 2, 5, 5.5, 0.3, 10, -3, 1.833333)
const zone = fc.option(one(...zones), { nil: undefined, freq: 3 })

const comparisons = (ops: readonly fc.Arbitrary<object>[]): fc.Arbitrary<{ op: string }> =>
  fc.oneof(...ops) as fc.Arbitrary<{ op: string }>

const scalar = fc.record({ op: order, value: literal })
const presence = fc.record({ op: one('exists', 'absent') })
const text = fc.record(
  {
    op: one('contains', 'omits', 'starts_with', 'ends_with'),
    value: one('a', '5', 'e', 'A'),
    ci: fc.boolean(),
  },
  { requiredKeys: ['op', 'value'] },
)
const pattern = fc.record({ op: fc.constant('matches'), value: one('^[0-9]+$', 'a|tr', '^.$') })
const some = fc.array(literal, { minLength: 1, maxLength: 3 })
const membership = fc.record({ op: one('one_of', 'none_of'), value: some })
const containment = fc.record({
  op: one('contains_any', 'contains_all', 'contains_none'),
  value: some,
})
const defined = <T extends object>(it: T): T => JSON.parse(JSON.stringify(it)) as T
const dates = fc
  .record({
    op: one('before_date', 'after_date'),
    value: one('2026-01-12', '2026-03-29', '2026-10-25T23:30:00Z'),
    timezone: zone,
  })
  .map(defined)
const fromNow = fc
  .record({
    op: one('within_last', 'within_next', 'before_last', 'after_next'),
    value: one(...spans),
    timezone: zone,
  })
  .map(defined)
const ofAny = comparisons([scalar, scalar, presence, text, pattern, membership, containment])
const ofNumber = fc.oneof(
  fc.record({ op: order, value: number }),
  fc.record({ op: order, value: number }),
  fc.record({
    op: one('one_of', 'none_of'),
    value: fc.array(number, { minLength: 1, maxLength: 3 }),
  }),
)

const prop: fc.Arbitrary<Filter> = fc
  .tuple(one('p', 'p', 'q', 'in.x', 'list[*]'), fc.oneof(ofAny, dates))
  .map(([path, comparison]) => ({ prop: path, ...comparison }) as Filter)
const filter: fc.Arbitrary<Filter> = fc.oneof(
  { weight: 4, arbitrary: prop },
  prop.map((not) => ({ not })),
  fc.tuple(prop, prop).map((all) => ({ all })),
  fc.tuple(prop, prop).map((any) => ({ any })),
)
/** A property beside a trait: what it says moves with the traits. */
const moving = fc
  .record({
    prop: one('p', 'q', 'in.x', 'list'),
    op: one('eq', ...orderOps),
    ref: one('trait:limit', 'trait:age', 'trait:plan', 'trait:plan.in'),
  })
  .map((it) => it as Filter)
const eventFilter: fc.Arbitrary<Filter> = fc.oneof(
  { weight: 3, arbitrary: filter },
  moving,
  fc.tuple(prop, moving).map((all) => ({ all })),
  fc.tuple(moving, filter).map((any) => ({ any })),
  fc.tuple(moving, moving).map(([a, b]): Filter => ({ all: [{ not: a }, b] })),
)

const window = fc.oneof(
  one(...spans).map((last) => ({ last })),
  one({ last: '2h', grid: '30m' }, { last: '2d', grid: '1d' }, { last: '7d', grid: '12h' }),
  one(['1h', '2h'], ['1d', '3d'], ['2d', '7d'], ['7d', '30d']).map((ages) => ({
    between_ago: ages,
  })),
  one(
    { after: '2026-01-11' },
    { before: '2026-03-29' },
    { after: '2026-01-10T01:00:00Z', before: '2026-01-12' },
    { after: '2026-10-25', timezone: 'Europe/Dublin' },
  ),
  fc.record({ calendar_days: one(1, 2, 3, 7), timezone: zone }).map(defined),
)
const maybe = <T>(it: fc.Arbitrary<T>, freq = 2) => fc.option(it, { nil: undefined, freq })
const event = fc
  .record({
    name: one('Ordered', 'Ordered', 'Seen', 'Left'),
    where: maybe(eventFilter, 3),
    window: maybe(window, 4),
  })
  .map(defined)

const reducing = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ count: {} }) },
  fc.constantFrom('first', 'last').map((reducer) => ({ [reducer]: { prop: 'd' } })),
  ...(['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct'] as const).map((reducer) =>
    one('p', 'p', 'q').map((path) => ({ [reducer]: { prop: path } })),
  ),
  one(1, 2, 3, undefined).map((min_frequency) => ({ mode: defined({ prop: 'p', min_frequency }) })),
  zone.map((timezone) => ({ distinct_days: defined({ timezone }) })),
)
const joined = (of: fc.Arbitrary<object>): fc.Arbitrary<Measure> =>
  fc.tuple(event, of).map(([found, made]) => ({ event: found, ...made }) as unknown as Measure)
const comparable = joined(reducing)
export const anyMeasure = fc.oneof(
  { weight: 8, arbitrary: comparable },
  joined(fc.constant({ unique: { prop: 'p' } })),
)

const opsOf = (measure: Measure): fc.Arbitrary<object> => {
  if ('count' in measure)
    return fc.record({ op: one('gte', 'gt', 'eq', 'lte', 'lt'), value: fc.nat({ max: 4 }) })
  if ('sum' in measure || 'distinct' in measure || 'distinct_days' in measure) return ofNumber
  if ('unique' in measure) return comparisons([presence, text, pattern, containment])
  if (measure.first?.prop === 'd' || measure.last?.prop === 'd')
    return comparisons([dates, fromNow, fromNow, presence])
  return 'first' in measure || 'last' in measure || 'mode' in measure
    ? comparisons([ofAny, ofAny, dates, fromNow])
    : comparisons([ofNumber, ofNumber, presence])
}
const reducerOf = (measure: object) => Object.keys(measure).find((key) => key !== 'event') as string

/** With what it is compared with beside its reducer. */
const compared = (measure: Measure, comparison: object): Condition => {
  const reducer = reducerOf(measure) as 'sum'
  return { ...measure, [reducer]: { ...measure[reducer], ...comparison } } as Condition
}

const step = fc
  .record({
    event: fc.record({
      name: one('Ordered', 'Seen', 'Left'),
      where: maybe(
        fc.oneof(
          fc
            .record({
              prop: one('p', 'q'),
              op: one('eq', ...orderOps),
              ref: one('a.prop.p', 'a.prop.q'),
            })
            .map((it) => it as Filter),
          prop,
          prop.map(
            (it): Filter => ({ all: [it, { prop: 'p', op: 'eq', ref: 'a.prop.p' } as Filter] }),
          ),
        ),
        3,
      ),
    }),
    within: maybe(one(...spans), 3),
    then: one('did', 'did'),
  })
  .map(defined)
const sequence: fc.Arbitrary<Condition> = fc
  .tuple(
    fc.record({ name: one('Ordered', 'Seen'), where: maybe(prop, 3) }).map(defined),
    fc.array(step, { minLength: 1, maxLength: 2 }),
    maybe(window, 3),
    one('did', 'immediate', 'after_deadline'),
    one(...spans),
  )
  .map(([first, later, found, ending, within]) => {
    const steps: object[] = [{ event: first, as: 'a' }, ...later]
    const last = { ...steps.at(-1), then: 'did_not' }
    if (ending !== 'did') steps[steps.length - 1] = last
    if (ending === 'after_deadline') steps[steps.length - 1] = { ...last, within }
    const settle = ending === 'after_deadline' ? ending : 'immediate'
    return defined({ sequence: { window: found, settle, steps } }) as unknown as Condition
  })

/** What may be referred to: computed traits t0, t1, … and audiences a0, a1, … */
type Known = { readonly traits: readonly Measure[]; readonly audiences: number }

const leaf = ({ traits, audiences }: Known): fc.Arbitrary<Condition> => {
  const numeric = traits.flatMap((it, at) => ('unique' in it ? [] : [`computed:t${at}`]))
  const ref = fc.oneof(
    one('trait:limit', 'trait:age', ...numeric),
    one({ trait: ['limit'] }),
    comparable,
  )
  const referring = fc.record({ op: order, ref })
  const measured = fc.oneof(
    { weight: 3, arbitrary: anyMeasure.chain((it) => opsOf(it).map((how) => compared(it, how))) },
    fc.tuple(comparable, referring).map(([it, how]) => compared(it, how)),
  )
  const trait = fc
    .tuple(
      one('plan', 'age', 'limit', 'plan.in', 'plan[*]'),
      comparisons([ofAny, ofAny, referring]),
    )
    .map(([path, how]) => ({ trait: path, ...how }) as Condition)
  const dated = fc
    .tuple(fc.constant('due'), fc.oneof(dates, fromNow, fromNow))
    .map(([path, how]) => ({ trait: path, ...how }) as Condition)
  const compare = fc
    .tuple(comparable, comparable, order)
    .map(([left, right, op]): Condition => ({ compare: [left, right], op }))
  const all: fc.WeightedArbitrary<Condition>[] = [
    { weight: 8, arbitrary: measured },
    { weight: 3, arbitrary: trait },
    { weight: 2, arbitrary: dated },
    { weight: 2, arbitrary: compare },
    { weight: 4, arbitrary: sequence },
    { weight: 1, arbitrary: fc.constant<Condition>({ identified: true }) },
  ]
  if (traits.length > 0)
    all.push({
      weight: 2,
      arbitrary: fc
        .nat({ max: traits.length - 1 })
        .chain((at) =>
          opsOf(traits[at] as Measure).map((how) => ({ computed: `t${at}`, ...how }) as Condition),
        ),
    })
  if (audiences > 0)
    all.push({
      weight: 2,
      arbitrary: fc
        .record({
          audience: fc.nat({ max: audiences - 1 }).map((at) => `a${at}`),
          in: fc.boolean(),
        })
        .map((it) => it as Condition),
    })
  return fc.oneof(...all)
}

export const anyCondition = (known: Known, depth = 2): fc.Arbitrary<Condition> => {
  if (depth === 0) return leaf(known)
  const child = anyCondition(known, depth - 1)
  return fc.oneof(
    { weight: 5, arbitrary: leaf(known) },
    child.map((not) => ({ not })),
    fc.array(child, { minLength: 1, maxLength: 3 }).map((all) => ({ all })),
    fc.array(child, { minLength: 1, maxLength: 3 }).map((any) => ({ any })),
  )
}

export type Definition = Required<Audience>

/** The first few are referred to by others, as only audiences of users can be. */
const maybeOfAccounts = (
  condition: fc.Arbitrary<Condition>,
  at: number,
): fc.Arbitrary<Condition | OfUsers> => {
  if (at < 3) return condition
  const ofUsers = fc
    .record({ quantifier: one('any', 'all', 'none'), where: condition })
    .map((users): OfUsers => ({ users }))
  return fc.oneof({ weight: 4, arbitrary: condition }, ofUsers)
}

/** Computed traits first; an audience may refer to those before it. */
export const someDefinitions = (
  traits: number,
  audiences: number,
): fc.Arbitrary<readonly Definition[]> =>
  fc
    .array(fc.tuple(anyMeasure, one(...zones)), { minLength: traits, maxLength: traits })
    .chain((measures) =>
      fc
        .tuple(
          ...Array.from({ length: audiences }, (_, at) =>
            fc.tuple(
              maybeOfAccounts(
                anyCondition({ traits: measures.map(([it]) => it), audiences: Math.min(at, 3) }),
                at,
              ),
              one(...zones),
              one(true, true, false),
            ),
          ),
        )
        .map((conditions) => [
          ...measures.map(([condition, timezone], at): Definition => {
            const whole = { kind: 'trait' as const, includeAnonymous: true }
            return { key: `t${at}`, condition, timezone, ...whole }
          }),
          ...conditions.map(([condition, timezone, includeAnonymous], at): Definition => {
            return { key: `a${at}`, kind: 'audience', condition, timezone, includeAnonymous }
          }),
        ]),
    )
