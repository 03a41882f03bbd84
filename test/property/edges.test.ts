// Instants and values at the edges of what there is: what one user is in and has, at every timer and the instant before
// it, beside the naive evaluator.
import { test } from 'vitest'
import { readConditionText, readMeasureText } from '../../src/domain/condition/text/read.ts'
import type { Json } from '../support/language.ts'
import type { Definition } from './audience-definitions.ts'
import { playDefinition } from './audience-one.ts'

const hour = 3_600_000
const day = 24 * hour

const definitionOf = (is: string, timezone: string): Definition => {
  const [condition, measure] = [readConditionText(is), readMeasureText(is)]
  const read = condition.ok ? condition : measure
  if (!read.ok) throw new Error(`${is}: ${JSON.stringify([condition, measure])}`)
  const kind = condition.ok ? ('audience' as const) : ('trait' as const)
  const whole = { key: 'a', kind, timezone, includeAnonymous: true }
  return { ...whole, condition: read.json as unknown as Definition['condition'] }
}

type Happening = {
  readonly at: number
  /** How long before its receipt it says it was. */
  readonly ago?: number
  readonly properties?: object
  readonly traits?: object
}

/** Everything said at its instant, and the clock then moved on by each of `then`. */
const play = (
  is: string,
  {
    happens,
    then,
    timezone = 'UTC',
  }: {
    readonly happens: readonly Happening[]
    readonly then: readonly number[]
    readonly timezone?: string
  },
): void => {
  const definition = definitionOf(is, timezone)
  const start = happens[0]?.at as number
  let now = start
  const said = happens.map(({ at, ago = 0, properties, traits }) => {
    const by = at - now
    now = at
    const call = traits ? { type: 'identify', traits } : { type: 'track', event: 'E', properties }
    return { advance: { by }, said: [{ ...call, ago } as never] }
  })
  const waits = then.map((by) => ({ advance: { by }, said: [] }))
  playDefinition(definition, {
    start,
    isNamed: true,
    definitions: [definition],
    steps: [...said, ...waits],
  })
}

// The hour that is left out or comes twice, a day that begins at one o'clock, half an hour, a day that was left out, and
// a zone that is ahead of all.
const changes: readonly (readonly [string, string])[] = [
  ['Europe/Dublin', '2026-03-29T01:00:00Z'],
  ['Europe/Dublin', '2026-10-25T01:00:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['America/Sao_Paulo', '2019-02-17T02:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00:00Z'],
  ['Pacific/Kiritimati', '2028-02-28T10:00:00Z'],
  ['UTC', '2028-02-29T00:00:00Z'],
  ['UTC', '2100-02-28T23:59:59Z'],
  ['UTC', '1970-01-01T00:00:00Z'],
]
const calendar = [
  "event('E').calendar_days(1).count() >= 1",
  "event('E').calendar_days(2).count() = 0",
  "event('E').calendar_days(7).count() >= 2",
  "event('E').calendar_days(3).distinct_days()",
  "event('E').distinct_days()",
  "event('E').within(24 hours).count()",
  "event('E').between(1 day, 2 days).count() >= 1",
]

test.each(changes.flatMap(([zone, at]) => calendar.map((is) => [is, zone, at] as const)))(
  '%s in %s around %s',
  (is, timezone, at) => {
    const turn = Date.parse(at)
    const around = [-day - 1, -day, -hour, -1, 0, 1, hour - 1, hour, day - 1, day, day + hour]
    const happens = around
      .map((by) => turn + by)
      .filter((it) => it >= 0)
      .map((it) => ({ at: it, properties: {} }))
    const halves = Array.from({ length: 12 }, () => 12 * hour)
    play(is, { happens, then: [1, hour - 1, ...halves, 8 * day], timezone })
  },
)

const dates: readonly Json[] = [
  ...['2028-02-29', '2026-02-29', '2026-10-25T01:30:00+01:00', '2026-10-25T01:30:00Z'],
  ...['1970-01-01', '1969-12-31T23:59:59Z', '9999-12-31', '9999-12-31T23:59:59.999Z', '0001-01-01'],
  ...['0050-06-01', '0999-12-31', '2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00.9999-0130'],
  ...['2016-12-31T23:59:60.5Z', '2026-01-01T12:00+02', '2011-12-30', '1844-12-31', '+10:00'],
  ...['10000-01-01', '+010000-01-01T00:00:00Z', '2026-03-29', '2018-11-04', '2026-04-05', ''],
  ...['2026-06-30T23:59:60Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:00', '2026-1-1', 0, true],
]
test.each([
  ["trait('d').within_last(7 days)", 'Europe/Dublin'],
  ["trait('d').before_last(7 days)", 'Europe/Dublin'],
  ["trait('d').within_next(3 days)", 'America/Sao_Paulo'],
  ["trait('d').after_next(3 days)", 'Australia/Lord_Howe'],
  ["trait('d').before_date('9999-12-31')", 'Pacific/Kiritimati'],
  ["trait('d').after_date('1970-01-01')", 'America/Sao_Paulo'],
  ["event('E').last(property('d')).within_last(7 days)", 'Europe/Dublin'],
])('%s of dates at the edges, in %s', (is, timezone) => {
  for (const at of [
    0,
    Date.UTC(2026, 9, 24, 22),
    Date.UTC(2018, 10, 3, 12),
    Date.UTC(9999, 11, 31),
  ])
    for (const d of dates)
      play(is, {
        happens: [
          { at, traits: { d } },
          { at, properties: { d } },
        ],
        then: [hour, day, 8 * day],
        timezone,
      })
})

const big = 2 ** 53
const numbers: readonly Json[] = [
  ...[big, big + 2, -big, big - 1, 0, 0.1, 0.2, 1e-7, 4.9e-324, 1e21, 1.7976931348623157e308],
  ...['9007199254740993', '-0', '0.0', '1e3', '01', ' 5', '5.', '5', 'NaN', '', null, true, []],
]
test.each([
  ...['=', '!=', '>', '>=', '<', '<='].flatMap((sign) =>
    [big, -big, 0, 0.3, 1e21, 5].flatMap((value) => [
      `trait('n') ${sign} ${value}`,
      `event('E').last(property('n')) ${sign} ${value}`,
    ]),
  ),
  ...['sum', 'avg', 'min', 'max', 'distinct', 'first', 'unique'].map(
    (reducer) => `event('E').within(1 day).${reducer}(property('n'))`,
  ),
  "event('E').mode(property('n'), 1)",
  "event('E').where(property('n') = '').count()",
  "event('E').where(property('n') = trait('n')).count()",
  "trait('n') = ''",
])('%s of numbers and texts at the edges', (is) => {
  const at = Date.UTC(2026, 0, 1)
  play(is, {
    happens: numbers.flatMap((n, place) => [
      { at: at + place * hour, properties: { n } },
      { at: at + place * hour, traits: { n } },
    ]),
    then: [hour, day, day],
  })
})

// A month ahead, just so, just before, and so long ago that it is taken for an error.
test.each([
  "event('E').within(1 hour).count()",
  "event('E').after('1970-01-01').before('2026-01-01').count()",
  "event('E').before('1970-01-02').count() >= 1",
  "event('E').after('9999-12-31').count() >= 1",
  "event('E').first(property('n'))",
  "sequence(event('E').where(property('n') = 1), did event('E').where(property('n') = 2) within 1 hour)",
])('%s of calls that say they were before 1970, or are yet to be', (is) => {
  const at = Date.UTC(2026, 0, 1)
  play(is, {
    happens: [-30 * day, 0, 1, at - 1, at, at + 1, at + day].map((ago, n) => ({
      ...{ at: at + n, ago },
      properties: { n: n % 3 },
    })),
    then: [hour - 10, 10, hour, day],
  })
})

test('conditions as wide and as deep as there may be', () => {
  const happens = [{ at: Date.UTC(2026, 0, 1), properties: {} }]
  const wide = Array.from({ length: 200 }, (_, n) => `event('E').count() = ${n + 1}`).join(' OR ')
  const deep = `${'NOT '.repeat(49)}event('E').count() = 1`
  for (const is of [wide, deep]) play(is, { happens, then: [hour] })
})
