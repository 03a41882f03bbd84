// Random histories: calls of a few people, and instants that lie on the edges of windows, dates and steps.
import fc from 'fast-check'
import type { Sent } from '../project/rig.ts'
import { durationOf } from '../support/calendar.ts'
import { anyDate, anyValue, eventNames, spans } from './audience-definitions.ts'

const hour = 3_600_000
const day = 24 * hour

/** A plain day, the two changes of clocks of Dublin, and the eve of a leap day. */
export const starts = [
  Date.UTC(2026, 0, 10),
  Date.UTC(2026, 2, 28, 22),
  Date.UTC(2026, 9, 24, 21),
  Date.UTC(2028, 1, 28, 20),
]

const users = fc.constantFrom('u1', 'u2', 'u3', 'null')
const visitors = fc.constantFrom('a1', 'a2')

/** How long before its receipt a call says it was: also after it, and before 1970. */
const ago = fc.constantFrom(
  ...[0, 0, 0, 0, 1, hour - 1, hour, hour + 1, day, 2 * day - 1, 2 * day, 3 * day, 8 * day],
  ...[-hour, 40_000 * day],
)

const given = (it: object): object => JSON.parse(JSON.stringify(it)) as object
const properties = fc
  .tuple(anyValue, anyValue, anyValue, anyDate)
  .map(([p, q, x, d]) => given({ p, q, d, in: { x }, list: [x, p] }))
const trait = fc.oneof(
  fc.tuple(fc.constantFrom('plan', 'age', 'limit'), anyValue),
  fc.tuple(fc.constantFrom('limit'), fc.constantFrom(2, 5, '5', 5.5)),
  fc.tuple(fc.constantFrom('due'), anyDate),
)
const traits = fc
  .array(trait, { minLength: 1, maxLength: 2 })
  .map((it) => given(Object.fromEntries(it)))

export type Said = Sent & { readonly ago: number }

const track = fc.record({
  type: fc.constant('track' as const),
  event: fc.constantFrom(...eventNames, 'Ordered', 'Other'),
  properties,
})
const identify = fc.record({ type: fc.constant('identify' as const), traits })

/** By one person, who is known by a user id or is not. */
export const saidByOne: fc.Arbitrary<Said> = fc
  .tuple(fc.oneof({ weight: 4, arbitrary: track }, identify), ago)
  .map(([call, before]) => ({ ...call, ago: before }))

export const saidByAnyone: fc.Arbitrary<Said> = fc
  .tuple(
    fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(
            track,
            fc.oneof(
              users.map((userId) => ({ userId })),
              visitors.map((anonymousId) => ({ anonymousId })),
            ),
          )
          .map(([call, who]) => ({ ...call, ...who })),
      },
      {
        weight: 4,
        arbitrary: fc
          .tuple(identify, fc.option(users, { freq: 3 }), fc.option(visitors))
          .map(([call, userId, anonymousId]) => ({ ...call, userId, anonymousId })),
      },
      {
        weight: 3,
        arbitrary: fc
          .record({
            groupId: fc.constantFrom('g1', 'g2', 'g3', '0'),
            who: fc.oneof(
              users.map((userId) => ({ userId })),
              visitors.map((anonymousId) => ({ anonymousId })),
            ),
          })
          .map(({ groupId, who }) => ({ type: 'group' as const, groupId, ...who })),
      },
      fc.record({
        type: fc.constant('alias' as const),
        userId: users,
        previousId: fc.oneof(users, visitors),
      }),
    ),
    ago,
  )
  .map(([call, before]) => ({ ...call, ago: before }))

/** The same call where its visitor is of one user, whichever of their calls is read first. */
export const withoutOrder = (said: Said): Said => {
  const { previousId: _, ...call } = said
  if (said.type !== 'alias' && said.type !== 'identify') return call
  const isSecond = said.userId === 'u2' || said.anonymousId === 'a2'
  const who = isSecond ? { userId: 'u2', anonymousId: 'a2' } : { userId: 'u1', anonymousId: 'a1' }
  return { traits: {}, ...call, ...who, type: 'identify' }
}

/** By so much, or to where something that was said leaves, or almost leaves, a span. */
export type Advance =
  | { readonly by: number }
  | { readonly edge: { readonly said: number; readonly span: number; readonly off: number } }

const advance: fc.Arbitrary<Advance> = fc.oneof(
  fc
    .constantFrom(
      ...[0, 1, 1_000, hour - 1, hour, 7 * hour, day, 25 * hour, 49 * hour, 8 * day, 31 * day],
    )
    .map((by) => ({ by })),
  fc
    .record({
      said: fc.nat({ max: 5 }),
      span: fc.nat({ max: spans.length - 1 }),
      off: fc.constantFrom(...[-hour, -60_000, -1_000, -1, 0, 0, 1, 1_000, hour]),
    })
    .map((edge) => ({ edge })),
)

export type Step = { readonly advance: Advance; readonly said: readonly Said[] }

export const someSteps = (said: fc.Arbitrary<Said>, { min = 2, max = 8, calls = 4 } = {}) =>
  fc.array(fc.record({ advance, said: fc.array(said, { maxLength: calls }) }), {
    minLength: min,
    maxLength: max,
  })

/** Where the clock goes from `now`, after calls of these times; never back. */
export const advanced = (now: number, { advance: to }: Step, times: readonly number[]): number => {
  if ('by' in to) return now + to.by
  const time = times.at(-1 - to.edge.said)
  if (time === undefined) return now
  const span = durationOf(spans[to.edge.span] as string)
  const edge = time + span + to.edge.off
  // Windows move on a grid: mostly where the whole hour does.
  const onGrid = edge - (time % hour)
  return Math.max(now, onGrid > now ? onGrid : edge)
}
