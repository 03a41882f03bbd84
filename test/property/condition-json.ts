// Conditions of all shapes in JSON, sound by construction, for properties of the language.
import fc from 'fast-check'
import type { JsonObject } from '../../src/domain/message.ts'

const orderOps = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte'] as const
const maybe = <T>(key: string, of: fc.Arbitrary<T>) =>
  fc.option(of, { nil: undefined }).map((value) => (value === undefined ? {} : { [key]: value }))
const merged = (...parts: readonly fc.Arbitrary<object>[]): fc.Arbitrary<JsonObject> =>
  fc.tuple(...parts).map((list) => Object.assign({}, ...list) as JsonObject)

const word = fc.oneof(
  fc.constantFrom('a', 'price', 'cart id', "it's", 'a\\b', 'é\n', 'sku"', 'AND', '(', 'prop'),
  fc.string({ minLength: 1, maxLength: 5, unit: 'binary' }),
)
const key = word.filter((each) => each !== '[*]')
const plainKey = fc.constantFrom('a', 'plan', 'x y', 'ü', 'items')
const path = (lists: boolean) =>
  fc.oneof(
    plainKey,
    fc.tuple(plainKey, plainKey).map(([a, b]) => `${a}.${b}`),
    fc.array(key, { minLength: 1, maxLength: 3 }),
    ...(lists
      ? [plainKey.map((a) => `${a}[*].sku`), plainKey.map((a) => [a, '[*]', '[*]', 'b.c'])]
      : []),
  )
const zone = fc.constantFrom('UTC', 'Europe/Dublin', 'Asia/Kolkata')
const duration = fc.constantFrom('1s', '90s', '60m', '24h', '36h', '7d', '2w', '90d')
const date = fc.constantFrom('2026-01-31', '2026-03-29T01:30:00Z', '2024-02-29T23:00:00.5+02:00')
const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e21, 1e-7, -0),
)
const scalar = fc.oneof(number, fc.boolean(), fc.string({ maxLength: 5 }), word)
const ci = maybe('ci', fc.boolean())
const opIn = <K extends string>(...ops: readonly K[]) =>
  fc.constantFrom(...ops).map((op) => ({ op }))
const value = <T>(of: fc.Arbitrary<T>) => of.map((found) => ({ value: found }))

const presence = opIn('exists', 'absent')
const texts = merged(opIn('contains', 'omits', 'starts_with', 'ends_with'), value(word), ci)
const pattern = merged(
  opIn('matches'),
  value(fc.constantFrom('^a+$', 'x|y', '[^a-c]\\d{2,3}', "it's", '(?:ab)*?c')),
  ci,
)
const lists = (...ops: readonly string[]) =>
  merged(opIn(...ops), value(fc.array(scalar, { minLength: 1, maxLength: 3 })), ci)
const membership = lists('one_of', 'none_of')
const containment = lists('contains_any', 'contains_all', 'contains_none')
const dates = merged(opIn('before_date', 'after_date'), value(date), maybe('timezone', zone))
const spans = merged(
  opIn('within_last', 'within_next', 'before_last', 'after_next'),
  value(duration),
  maybe('timezone', zone),
)
const scalars = merged(opIn(...orderOps), value(scalar), ci)
const numbers = merged(opIn(...orderOps), value(number), ci)

const prop = merged(
  path(true).map((found) => ({ prop: found })),
  fc.oneof(scalars, presence, texts, pattern, membership, containment, dates),
)

const tree = (leaf: fc.Arbitrary<JsonObject>, depth: number): fc.Arbitrary<JsonObject> => {
  if (depth === 0) return leaf
  const child = tree(leaf, depth - 1)
  const of = fc.array(child, { minLength: 1, maxLength: 3 })
  return fc.oneof(
    { weight: 3, arbitrary: leaf },
    { weight: 2, arbitrary: of.map((all) => ({ all })) },
    { weight: 2, arbitrary: of.map((any) => ({ any })) },
    { weight: 2, arbitrary: child.map((not) => ({ not })) },
  )
}

const filter = tree(prop, 2)
/** Of what is counted or measured: beside a trait, too. */
const moving = merged(
  path(false).map((found) => ({ prop: found })),
  opIn(...orderOps),
  fc.oneof(
    fc.constant({ ref: 'trait:plan.city' }),
    path(false).map((trait) => ({ ref: { trait } })),
  ),
  ci,
)
const eventFilter = tree(fc.oneof({ weight: 3, arbitrary: prop }, moving), 2)
const window = fc.oneof(
  merged(fc.constantFrom('7d', '168h', '60m', '2w').map((last) => ({ last }))),
  fc.constant({ last: '2h', grid: '2m' }),
  fc.constantFrom(['30d', '90d'], ['24h', '7d']).map((ages) => ({ between_ago: ages })),
  fc.constant({ between_ago: ['1h', '2h'], grid: '60m' }),
  merged(fc.constant({ after: '2026-01-01' }), maybe('timezone', zone)),
  merged(fc.constant({ before: '2026-01-01T00:00:00Z' })),
  fc.constant({ after: '2026-01-01', before: '2026-07-01', timezone: 'Europe/Dublin' }),
  merged(
    fc.integer({ min: 1, max: 400 }).map((days) => ({ calendar_days: days })),
    maybe('timezone', zone),
  ),
)
const event = merged(
  word.map((name) => ({ name })),
  maybe('where', eventFilter),
  maybe('window', window),
).map((found) => ({ event: found }))

const of = path(false).map((found) => ({ prop: found }))
const frequency = maybe('min_frequency', fc.integer({ min: 1, max: 5 }))
const bare = fc.oneof(
  fc.constant({ count: {} }),
  merged(maybe('timezone', zone)).map((made) => ({ distinct_days: made })),
  ...['sum', 'avg', 'min', 'max', 'first', 'last', 'distinct'].map((reducer) =>
    of.map((made) => ({ [reducer]: made })),
  ),
  merged(of, frequency).map((mode) => ({ mode })),
)
const comparable = merged(event, bare)

/** A computed trait. */
export const anyMeasure: fc.Arbitrary<JsonObject> = fc.oneof(
  comparable,
  merged(
    event,
    of.map((unique) => ({ unique })),
  ),
)

const computedKey = word.map((found) => `computed:${found}`)
const ref = fc
  .oneof(
    fc.constantFrom('trait:limit', 'trait:plan.limit'),
    path(false).map((trait) => ({ trait })),
    comparable,
    computedKey,
  )
  .map((found) => ({ ref: found }))
const referring = merged(opIn(...orderOps), ref, ci)

const made = (reducer: string, ...how: readonly fc.Arbitrary<object>[]) =>
  merged(
    event,
    merged(of, fc.oneof(...how)).map((found) => ({ [reducer]: found })),
  )
const numeric = [numbers, referring, membership]
const measured = fc.oneof(
  merged(
    event,
    merged(opIn('gte', 'gt', 'eq', 'lte', 'lt'), value(fc.integer({ min: 0, max: 1_000 }))).map(
      (count) => ({ count }),
    ),
  ),
  merged(
    event,
    merged(opIn(...orderOps), ref).map((count) => ({ count })),
  ),
  merged(
    event,
    merged(numbers, maybe('timezone', zone)).map((distinct_days) => ({ distinct_days })),
  ),
  ...['sum', 'distinct'].map((reducer) => made(reducer, ...numeric)),
  ...['avg', 'min', 'max'].map((reducer) => made(reducer, ...numeric, presence)),
  ...['first', 'last'].map((reducer) =>
    made(
      reducer,
      scalars,
      referring,
      presence,
      texts,
      pattern,
      membership,
      containment,
      dates,
      spans,
    ),
  ),
  merged(
    event,
    merged(of, frequency, texts).map((mode) => ({ mode })),
  ),
  made('unique', presence, texts, pattern, containment),
)

const match = merged(
  of,
  opIn(...orderOps),
  fc.oneof(
    fc.constant({ ref: 'first.prop.cart.id' }),
    path(false).map((found) => ({ ref: { step: 'first', prop: found } })),
  ),
)
const laterWhere = fc.oneof(
  filter,
  match,
  fc.tuple(match, filter).map((all) => ({ all })),
  fc.tuple(prop, match, match).map((all) => ({ all })),
)
const within = maybe('within', duration)
const step = (more: fc.Arbitrary<object>) =>
  merged(
    merged(
      word.map((name) => ({ name })),
      maybe('where', laterWhere),
    ).map((found) => ({ event: found })),
    more,
  )
const first = merged(
  word.map((name) => ({ name })),
  maybe('where', filter),
).map((found) => ({
  event: found,
  as: 'first',
}))
const did = merged(within, maybe('then', fc.constant('did')))
const ending = fc.oneof(
  fc.tuple(step(did), maybe('settle', fc.constant('immediate'))),
  fc.tuple(
    step(merged(within, fc.constant({ then: 'did_not' }))),
    maybe('settle', fc.constant('immediate')),
  ),
  fc.tuple(
    step(
      merged(
        duration.map((found) => ({ within: found })),
        fc.constant({ then: 'did_not' }),
      ),
    ),
    fc.constant({ settle: 'after_deadline' }),
  ),
)
const sequence = fc
  .tuple(maybe('window', window), first, fc.array(step(did), { maxLength: 2 }), ending)
  .map(([windowed, opening, middle, [last, settle]]) => ({
    sequence: { ...windowed, ...settle, steps: [opening, ...middle, last] },
  }))

const comparisons = fc.oneof(
  scalars,
  presence,
  texts,
  pattern,
  membership,
  containment,
  dates,
  spans,
)
const leaf: fc.Arbitrary<JsonObject> = fc.oneof(
  merged(
    path(true).map((trait) => ({ trait })),
    comparisons,
  ),
  merged(
    path(true).map((trait) => ({ trait })),
    referring,
  ),
  measured,
  fc
    .tuple(comparable, comparable, opIn(...orderOps))
    .map(([a, b, { op }]) => ({ compare: [a, b], op })),
  sequence as fc.Arbitrary<JsonObject>,
  fc.constant({ identified: true }),
  merged(
    word.map((audience) => ({ audience })),
    maybe('in', fc.boolean()),
  ),
  merged(
    word.map((computed) => ({ computed })),
    fc.oneof(comparisons, referring),
  ),
)

/** With references; every leaf is one comparison or two. */
export const anyCondition: fc.Arbitrary<JsonObject> = tree(leaf, 3)
