// The engine as a whole against the naive evaluator: any calls, batches, sweeps and restarts.
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { type Condition, evaluate } from '../oracle/oracle.ts'
import { type Call, withoutDuplicates } from '../oracle/people.ts'
import { aRig, audience, day, type Rig, type Sent } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
})

const value = fc.constantFrom(undefined, null, '', '5', 5, 5.5, true, 'true', ['5', 'a'], { in: 5 })
const person = fc.constantFrom('u1', 'u2', 'u3', 'null')
const visitor = fc.constantFrom('a1', 'a2', 'a3')
const hour = 3_600_000
const ago = fc.constantFrom(
  0,
  1,
  hour - 1,
  hour,
  hour + 1,
  day,
  2 * day,
  3 * day,
  -hour,
  40_000 * day,
)

const call: fc.Arbitrary<Sent> = fc.oneof(
  fc.record({
    type: fc.constant('track' as const),
    event: fc.constantFrom('Ordered', 'Seen', 'Other'),
    userId: fc.option(person, { freq: 3 }),
    anonymousId: fc.option(visitor),
    properties: value.map((price) => ({ price })),
  }),
  fc.record({
    type: fc.constant('identify' as const),
    userId: fc.option(person, { freq: 3 }),
    anonymousId: fc.option(visitor),
    traits: fc
      .tuple(fc.constantFrom('plan', 'age'), value)
      .map(([key, found]) => ({ [key]: found })),
  }),
  fc.record({ type: fc.constant('alias' as const), userId: person, previousId: person }),
)

const step = fc.oneof(
  { weight: 5, arbitrary: fc.array(fc.tuple(call, ago), { minLength: 1, maxLength: 6 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...[1, hour - 1, hour, 25 * hour, 49 * hour].map((advance) => ({ advance })),
    ),
  },
  { weight: 1, arbitrary: fc.constant('restart' as const) },
  { weight: 1, arbitrary: fc.constant('repeat' as const) },
)

const count = (op: string, n: number, last?: string) => ({
  event: { name: 'Ordered', ...(last === undefined ? {} : { window: { last } }) },
  count: { op, value: n },
})

const conditions: readonly Condition[] = [
  count('gte', 2),
  count('gte', 1, '1h'),
  count('eq', 0, '2d'),
  count('lte', 1, '2d'),
  { all: [count('gt', 0, '3d'), { not: count('gte', 1, '1h') }] },
  {
    event: { name: 'Seen', where: { prop: 'price', op: 'gte', value: 5 }, window: { last: '48h' } },
    count: { op: 'gte', value: 1 },
  },
  {
    any: [
      { trait: 'plan', op: 'eq', value: 5 },
      { trait: 'age', op: 'exists' },
    ],
  },
  { not: { trait: 'plan', op: 'neq', value: '5' } },
]

const all = conditions.map((condition, at) => audience(at + 1, condition))

/** Everybody in one partition, so that the log has one order for both. */
const onOne = { calls: 1, 'calls.import': 1, outbound: 1 }

const play = async (
  rig: Rig,
  steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[],
) => {
  const log: Call[] = []
  let last: Sent | null = null
  for (const [at, each] of steps.entries()) {
    if (at === 3) rig.live.replace({ audiences: all })
    if (each === 'restart') {
      await Promise.all(running.splice(0).map((projector) => projector.stop()))
      running.push(
        rig.start({ limits: { batchCallsMax: 2, historyCallsMax: 2, evaluateUsersMax: 1 } }),
      )
    } else if ('advance' in Object(each)) rig.advance((each as { advance: number }).advance)
    else {
      const calls: readonly Sent[] =
        each === 'repeat'
          ? [last ?? { userId: 'u1' }]
          : (each as [Sent, number][]).map(([sent, before]) => ({
              ...sent,
              timestamp: rig.now() - before,
            }))
      const messages = await rig.send(...calls)
      for (const [index, message] of messages.entries()) {
        const { properties = {}, traits = {} } = calls[index] as Sent
        log.push({ ...message, properties: plain(properties), traits: plain(traits) })
        last = { ...(calls[index] as Sent), messageId: message.messageId }
      }
    }
    if (at % 2 === 1) await rig.caughtUp()
    if (at % 3 === 2) await rig.sweep()
  }
  return log
}

/** As it comes out of JSON. */
const plain = (value: object) => JSON.parse(JSON.stringify(value)) as Call['traits']

test('after any history the engine says who is a member as the naive evaluator does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      const rig = await aRig(pool, all.slice(0, 4), onOne)
      running.push(rig.start({ limits: { batchCallsMax: 3, userCacheBytesMax: 3_000 } }))
      try {
        const log = await play(rig, steps)
        rig.live.replace({ audiences: all })
        await rig.caughtUp()
        await rig.built()
        await rig.sweep()
        for (const [at, condition] of conditions.entries()) {
          const members = evaluate(withoutDuplicates(log), condition, rig.now())
          const named = (await rig.members(at + 1)).filter((id) => id !== null)
          expect([at, named]).toEqual([at, [...members].sort()])
        }
      } finally {
        await Promise.all(running.splice(0).map((each) => each.stop()))
      }
    }),
    { numRuns: 8 },
  )
}, 120_000)
