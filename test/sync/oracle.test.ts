// Projector and sync together against the naive evaluator: at every sync of a random history, the
// messages in `outbound` are those that the definition asks for.
import { afterEach, expect, test } from 'vitest'
import { openCodecs } from '../../src/log/avro.ts'
import type { Running } from '../../src/running.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { startSync } from '../../src/sync/sync.ts'
import { answers } from '../oracle/oracle.ts'
import { aRig, audience, type Rig, type Sent, until } from '../project/rig.ts'
import { aDestination } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import type { Call, Condition } from '../support/language.ts'
import { type Answers, changesBetween } from '../support/told.ts'
import { told } from './stage.ts'

const { pool } = await cloneDatabase()
const codecs = await openCodecs({})
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((stage) => stage.stop()))
})

const [second, minute, hour] = [1_000, 60_000, 3_600_000]
const day = 24 * hour

const count = (op: string, value: number, event: object = {}): Condition => ({
  event: { name: 'Ordered', ...event },
  count: { op, value },
})

const conditions: readonly Condition[] = [
  count('gte', 2, { window: { last: '2d' } }),
  count('eq', 1, { window: { last: '1h' } }),
  count('lte', 1, { window: { last: '90d' } }),
  count('gte', 1, { where: { prop: 'amount', op: 'gte', value: 5 } }),
  { all: [count('eq', 1), { not: count('gte', 1, { window: { last: '36h' } }) }] },
  { trait: 'plan.tier', op: 'neq', value: 'free' },
  {
    any: [
      { all: [{ trait: 'age', op: 'gt', value: 17 }, count('gt', 0, { window: { last: '10d' } })] },
      { not: { trait: 'plan', op: 'exists' } },
    ],
  },
  count('lt', 3, { where: { not: { prop: 'tags', op: 'contains_any', value: ['b'] } } }),
]

/** A small generator with the seed in the test's name, so that a failure can be run again. */
const randomOf = (seed: number) => {
  let state = seed
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
  return <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T
}

type Pick = ReturnType<typeof randomOf>

const aCall = (pick: Pick, now: number): Sent => {
  const userId = pick(['u1', 'u2', 'u3', 'u4', null])
  const anonymousId =
    userId === null ? pick(['a1', 'a2', 'a3']) : pick(['a1', 'a2', 'a3', null, null])
  const age = pick([
    0,
    0,
    0,
    second,
    minute,
    hour - 1,
    hour,
    36 * hour,
    2 * day - 1,
    -day,
    11 * day,
  ])
  const who = { userId, anonymousId, timestamp: now - age }
  const type = pick(['track', 'track', 'track', 'track', 'identify', 'identify', 'alias'] as const)
  if (type === 'alias' && userId !== null)
    return {
      ...who,
      anonymousId: null,
      type,
      previousId: pick(['u1', 'u2', 'u3', 'a1', 'a2', 'old']),
    }
  if (type === 'track') {
    const amount = pick([undefined, null, 4, 5, '5', '05', true, 5.5])
    const properties = { amount, tags: pick([undefined, ['a'], ['a', 'b'], 'b']) }
    return { ...who, type, event: pick(['Ordered', 'Ordered', 'Viewed']), properties }
  }
  const plan = pick([undefined, null, { tier: 'free' }, { tier: 'gold' }, 'gold'])
  return { ...who, type: 'identify', traits: { plan, age: pick([undefined, 17, 18, '18', null]) } }
}

const asCall = (message: Awaited<ReturnType<Rig['send']>>[number]): Call => ({
  ...message,
  ...JSON.parse(Buffer.from(message.body).toString('utf8')),
})

const openLine = async () => {
  // Only forced syncs: one of the schedule's own might fall between two calls of a step.
  const syncEveryMs = 100_000 * day
  const audiences = conditions.map((condition, index) =>
    audience(index + 1, condition, { syncEveryMs }),
  )
  const counts = { calls: 1, 'calls.import': 1, outbound: 3, 'outbound.replay': 1 }
  const rig = await aRig(pool, audiences, counts)
  await pool.query('truncate sync_run, sync_chunk, sync_schedule, outbox restart identity')
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set bounds = null')
  rig.live.replace({ audiences, destinations: [aDestination()] })
  running.push(rig.start())
  await rig.built()
  const [source, appender] = [rig.log.source(), rig.log.appender()]
  running.push(startSync({ ...rig.deps, source, appender, codecs }))
  let read = [0n, 0n, 0n]
  const fresh = async () => {
    const ends = (await source.bounds('outbound')).map(({ end }) => end)
    const found = []
    for (const [partition, end] of ends.entries()) {
      const from = read[partition] as bigint
      for await (const { entries } of source.read({
        topic: 'outbound',
        partition,
        from,
        until: end,
      }))
        found.push(...(await codecs.outbound.decode(entries.map(({ value }) => value))))
    }
    read = ends
    return found
  }
  return { rig, audiences, fresh }
}

test.each([1, 2, 3, 4])('P2: what is sent is what the definition says, seed %i', async (seed) => {
  const pick = randomOf(seed * 7_919)
  const { rig, audiences, fresh } = await openLine()
  const log: Call[] = []
  const before = new Map<string, Answers>()
  let said = 0
  for (let step = 0; step < 30; step++) {
    const edge = pick([hour, hour - 1, 36 * hour, 2 * day, day, 10 * day, minute, 90 * day])
    rig.advance(pick([edge, edge, 3 * hour, minute]))
    // Windows move on their grids: stand on an edge now and then.
    if (pick([true, false])) rig.advance(hour - (rig.now() % hour) - pick([0, 1]))
    const calls = Array.from({ length: pick([0, 1, 2, 5]) }, () => aCall(pick, rig.now()))
    log.push(...(await rig.send(...calls)).map(asCall))
    const ids = audiences.map(({ id }) => id)
    const run = await requestSync(pool, { audienceIds: ids, at: rig.clock() })
    await until(
      `run ${run} is finished`,
      async () => (await findSyncRun(pool, run))?.state === 'finished',
    )
    const sent = Map.groupBy(await fresh(), ({ body }) =>
      Object.keys(JSON.parse(Buffer.from(body).toString()).traits).join(),
    )
    for (const { key, condition } of audiences) {
      const asked = { key, condition: condition as Condition }
      const after = answers(log, asked, rig.now()).named
      const expected = changesBetween(asked, before.get(key) ?? new Map(), after)
      expect(told(sent.get(key) ?? []), `${key} at step ${step}`).toEqual(
        expected.map(({ userId, value }) => `${userId}:${value}`).sort(),
      )
      before.set(key, after)
      said += expected.length
    }
  }
  expect(said).toBeGreaterThan(30)
})
