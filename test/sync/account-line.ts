// A random history of users of accounts through projector and sync, against a naive computation at every
// sync: merges, ties in any order, time, restarts and edits.
import { expect } from 'vitest'
import type { Audience } from '../../src/domain/configuration.ts'
import type { JsonObject } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { startSync } from '../../src/sync/sync.ts'
import { answers } from '../oracle/oracle.ts'
import { aRig, audience, type Rig, type Sent, until } from '../project/rig.ts'
import { aDestination } from '../support/configuration.ts'
import type { Call, Condition, OfUsers } from '../support/language.ts'
import { told } from './stage.ts'

const codecs = await openCodecs({})

const [minute, hour] = [60_000, 3_600_000]
const day = 24 * hour

const count = (op: string, value: number, last?: string): Condition => ({
  event: { name: 'Ordered', ...(last === undefined ? {} : { window: { last } }) },
  count: { op, value },
})

const users = (quantifier: string, where: Condition): JsonObject =>
  ({ users: { quantifier, where } }) as unknown as JsonObject

const gold: Condition = { trait: 'plan', op: 'eq', value: 'gold' }

const definitions: readonly (readonly [JsonObject, boolean])[] = [
  [users('any', count('gte', 2, '2d')), true],
  [users('all', count('gte', 1, '1h')), true],
  [users('none', count('gte', 1, '36h')), true],
  [users('all', count('lte', 1)), false],
  [users('none', gold), false],
  [users('any', { all: [gold, { not: count('gt', 2, '10d') }] }), false],
]

const audienceOf = (id: number, [condition, includeAnonymous]: (typeof definitions)[number]) =>
  // Only forced syncs: one of the schedule's own might fall between two calls of a step.
  audience(id, condition, { includeAnonymous, syncEveryMs: 100_000 * day })

type Told = ReadonlySet<string>

/** Who has a user id and is in the audience: by the definition, from nothing. */
const membersOf = (log: readonly Call[], of: Audience, at: number): Told => {
  const { key, includeAnonymous } = of
  const condition = of.condition as unknown as OfUsers
  return new Set(answers(log, { key, condition, includeAnonymous }, at).named.keys())
}

const changes = (before: Told, after: Told): readonly string[] =>
  [
    ...[...after].filter((userId) => !before.has(userId)).map((userId) => `${userId}:true`),
    ...[...before].filter((userId) => !after.has(userId)).map((userId) => `${userId}:false`),
  ].sort()

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
  const userId = pick(['u1', 'u2', 'u3', 'u4', 'u5', null])
  const anonymousId = userId === null ? pick(['a1', 'a2', 'a3']) : pick(['a1', 'a2', 'a3', null])
  const timestamp = now - pick([0, 0, minute, hour, 36 * hour, 2 * day - 1, 11 * day])
  const who = { userId, anonymousId, timestamp }
  const type = pick(['track', 'track', 'track', 'group', 'group', 'identify', 'alias'] as const)
  switch (type) {
    case 'track':
      return { ...who, type, event: pick(['Ordered', 'Ordered', 'Viewed']) }
    case 'group':
      return { ...who, type, groupId: pick(['g1', 'g2', 'g3', 'g4']) }
    case 'identify':
      return { ...who, type, traits: { plan: pick(['gold', 'free', null]) } }
    case 'alias':
      return userId === null
        ? { ...who, type: 'group', groupId: 'g1' }
        : { ...who, anonymousId: null, type, previousId: pick(['u1', 'u2', 'a1', 'a2', 'old']) }
  }
}

/** Where calls are read in no order, it may not decide who is who: each visitor is of one user. */
const orderlessCall = (pick: Pick, now: number): Sent => {
  const { previousId: _, ...call } = aCall(pick, now)
  const number = pick([1, 2, 3, 4, 5])
  const type = call.type === 'alias' ? 'identify' : (call.type ?? 'track')
  const userId = type === 'identify' || pick([true, false]) ? `u${number}` : null
  const anonymousId = type === 'identify' || userId === null ? `a${number}` : null
  return { ...call, type, userId, anonymousId }
}

const asCall = (message: Awaited<ReturnType<Rig['send']>>[number]): Call => ({
  ...message,
  ...JSON.parse(Buffer.from(message.body).toString('utf8')),
})

/** Few rows a transaction, so that whatever is paged is so in a small history. */
const limits = { accountDeltasMax: 5, accountUsersMax: 2, standbyMs: 20 }

type Line = {
  readonly pool: Pool
  readonly audiences: readonly Audience[]
  readonly partitions: number
  readonly projectors: number
  /** Which transaction of the sync fails next, before it is committed or after: null for none. */
  readonly fault: () => 'before' | 'after' | null
}

const lost = () => Object.assign(new Error('connection terminated'), { code: 'ECONNRESET' })

/** Sometimes the connection is lost before a transaction, or before its answer. */
const unsteady = (pool: Pool, fault: Line['fault']): Pool => ({
  ...pool,
  transaction: async (work, options) => {
    const at = fault()
    if (at === 'before') throw lost()
    const result = await pool.transaction(work, options)
    if (at === 'after') throw lost()
    return result
  },
})

const openLine = async ({ pool, audiences, partitions: calls, projectors, fault }: Line) => {
  const running: Running[] = []
  const stopAll = () => Promise.all(running.splice(0).map((stage) => stage.stop()))
  const rig = await aRig(pool, audiences, {
    calls,
    'calls.import': 1,
    outbound: 3,
    'outbound.replay': 1,
  })
  await pool.query(
    'truncate sync_run, sync_chunk, sync_schedule, sync_destination, outbox restart identity',
  )
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set bounds = null')
  const configure = async (configured: readonly Audience[]) => {
    rig.live.replace({ audiences: configured, destinations: [aDestination()] })
    await until('the audiences are as configured', async () => {
      const { rows } = await pool.query<{ id: number; condition: JsonObject }>(
        `select audience_id as id, condition from audience_state where state = 'live' order by 1`,
      )
      const quantifiers = ({ condition }: { condition: JsonObject }) =>
        (condition['users'] as JsonObject | undefined)?.['quantifier']
      return (
        rows.map((row) => `${row.id} ${quantifiers(row)}`).join() ===
        configured.map((each) => `${each.id} ${quantifiers(each)}`).join()
      )
    })
  }
  const [source, appender] = [rig.log.source(), rig.log.appender()]
  const startAll = () => {
    for (let at = 0; at < projectors; at++) running.push(rig.start())
    const sync = { ...rig.deps, source, appender, codecs, limits, pool: unsteady(pool, fault) }
    running.push(startSync(sync))
  }
  startAll()
  await configure(audiences)
  let read = [0n, 0n, 0n]
  /** What the destination was told since the last time, by property key. */
  const fresh = async () => {
    const ends = (await source.bounds('outbound')).map(({ end }) => end)
    const found = []
    for (const [partition, end] of ends.entries()) {
      const from = read[partition] as bigint
      const range = { topic: 'outbound', partition, from, until: end } as const
      for await (const { entries } of source.read(range))
        found.push(...(await codecs.outbound.decode(entries.map(({ value }) => value))))
    }
    read = ends
    return Map.groupBy(found, ({ body }) =>
      Object.keys(JSON.parse(Buffer.from(body).toString()).traits).join(),
    )
  }
  const sync = async (ids: readonly number[]) => {
    const run = await requestSync(pool, { audienceIds: ids, at: rig.clock() })
    await until(
      `run ${run} is finished`,
      async () => (await findSyncRun(pool, run))?.state === 'finished',
    )
    return fresh()
  }
  return { rig, configure, startAll, stopAll, sync }
}

/** The counts that are kept, beside those of the ties and bits that there are. */
const countsOf = async (pool: Pool) => {
  const { rows } = await pool.query<{ kept: string; found: string }>(
    `select (select json_agg(c order by group_id) from (
               select group_id, users from account_count where mark = 0) c)::text as kept,
            (select json_agg(c order by group_id) from (
               select t.group_id, count(*) as users from account_user t
                 join ustate u on u.user_key = t.user_key and u.merged_into is null
                group by 1) c)::text as found`,
  )
  return rows[0]
}

export type History = {
  readonly pool: Pool
  readonly seed: number
  readonly steps: number
  /** Several are read in no order, by several projectors. */
  readonly partitions: number
}

/** Throws where a destination is told anything else than the definition says. */
export const liveThrough = async ({ pool, seed, steps, partitions }: History): Promise<void> => {
  const pick = randomOf(seed * 7_919)
  const chance = randomOf(seed)
  let audiences = definitions.slice(0, 5).map((of, at) => audienceOf(at + 1, of))
  const line = await openLine({
    ...{ pool, audiences, partitions, projectors: Math.min(partitions, 2) },
    fault: () => chance([...Array<null>(18).fill(null), 'before', 'after']),
  })
  const { rig, configure, startAll, stopAll, sync } = line
  const call = partitions === 1 ? aCall : orderlessCall
  const log: Call[] = []
  const before = new Map<string, Told>()
  let said = 0
  try {
    for (let step = 0; step < steps; step++) {
      rig.advance(pick([hour, hour - 1, 36 * hour, 2 * day, 10 * day, 3 * hour, minute]))
      if (pick([true, false])) rig.advance(hour - (rig.now() % hour) - pick([0, 1]))
      const calls = Array.from({ length: pick([0, 1, 2, 5]) }, () => call(pick, rig.now()))
      log.push(...(await rig.send(...calls)).map(asCall))
      if (step === steps >> 1) {
        // One joins late, one says another thing of the same users, one goes.
        audiences = [
          ...audiences.filter(({ id }) => id !== 2 && id !== 3),
          audienceOf(3, [users('any', count('gte', 1, '36h')), true]),
          audienceOf(6, definitions[5] as (typeof definitions)[number]),
        ].sort((left, right) => left.id - right.id)
        await configure(audiences)
        before.delete('audience_2')
      }
      if (pick([true, false, false, false])) {
        await stopAll()
        startAll()
      }
      const sent = await sync(audiences.map(({ id }) => id))
      for (const of of audiences) {
        const after = membersOf(log, of, rig.now())
        const expected = changes(before.get(of.key) ?? new Set(), after)
        expect(told(sent.get(of.key) ?? []), `${of.key} at step ${step}`).toEqual(expected)
        before.set(of.key, after)
        said += expected.length
      }
      const { kept, found } = (await countsOf(pool)) as { kept: string; found: string }
      expect(kept).toEqual(found)
    }
  } finally {
    await stopAll()
  }
  expect(said).toBeGreaterThan(steps / 4)
}
