// The project stage on a real database and the log in memory, under a clock the test drives.
import { deserialize, serialize } from 'node:v8'
import pino from 'pino'
import { openSweep } from '../../src/audience/sweep.ts'
import type { Audience } from '../../src/domain/configuration.ts'
import {
  byKey,
  closedCondition,
  definitionText,
  parseDefinition,
} from '../../src/domain/definition.ts'
import { digestOf, logKey, type Message } from '../../src/domain/message.ts'
import type { Codec, Source, Topic } from '../../src/log/log.ts'
import { memoryLog, type Partitions } from '../../src/log/memory.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { projectLimits, startProject } from '../../src/project/project.ts'
import type { Running } from '../../src/running.ts'
import { aLive, anAudience } from '../support/configuration.ts'

/** Any bytes will do: what the log carries is the codec's own business. */
export const codec: Codec<Message> = {
  encode: (message) => serialize(message),
  decode: (values) => values.map((value) => deserialize(value) as Message),
}

export const day = 86_400_000
export const start = Date.UTC(2026, 0, 10)

/** Far beyond what a busy machine takes; a run at idle priority there needs more. */
const patienceMs = Number(process.env['PATIENCE_MS'] ?? 120_000)

export const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export type Sent = Partial<Omit<Message, 'body' | 'digest'>> & {
  readonly properties?: object
  readonly traits?: object
  readonly topic?: Topic
}

export const audience = (id: number, condition: object, over: Partial<Audience> = {}): Audience =>
  anAudience({
    id,
    name: `audience ${id}`,
    key: `audience_${id}`,
    condition: condition as Audience['condition'],
    ...over,
  })

export const performed = (op: string, value: number, last?: string) => ({
  event: { name: 'Ordered', ...(last === undefined ? {} : { window: { last } }) },
  count: { op, value },
})

let sent = 0

export const aMessage = (over: Sent, now: number): Message => {
  const { properties, traits, topic: _, ...fields } = over
  const messageId = over.messageId ?? `m${++sent}`
  const identity = { workspaceId: 1, sourceId: 1, messageId, ...fields }
  return {
    type: 'track',
    userId: null,
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: over.type === undefined || over.type === 'track' ? 'Ordered' : null,
    timestamp: now,
    originalTimestamp: now,
    sentAt: null,
    receivedAt: now,
    filtered: null,
    ...identity,
    digest: digestOf(identity),
    body: Buffer.from(JSON.stringify({ properties: properties ?? {}, traits: traits ?? {} })),
  }
}

const tables =
  'position, identity, ustate, membership, merge, audience_build, audience_fence, leaf, audience_state, duplicate_chunk, duplicate_segment, duplicate_page, usage_call, usage_sighting, usage_page, account_user, account_delta, account_visit, account_count, account_turn, identity_order'

const defaultPartitions: Partitions = {
  calls: 3,
  'calls.import': 2,
  outbound: 1,
  'outbound.replay': 1,
}

export const aRig = async (
  pool: Pool,
  audiences: readonly Audience[] = [],
  partitions: Partitions = defaultPartitions,
) => {
  await pool.query(`truncate ${tables}`)
  await pool.query('update project_plan set version = version + 1, configuration = 0')
  let now = start
  const clock = () => new Date(now)
  const log = memoryLog({ partitions, clock })
  const appender = log.appender()
  const live = aLive({ audiences })
  const source = log.source()
  const ends = async () => {
    const topics: readonly Topic[] = ['calls', 'calls.import']
    const bounds = await Promise.all(topics.map((topic) => source.bounds(topic)))
    return topics.flatMap((topic, at) =>
      (bounds[at] ?? []).map(({ end }, partition) => ({ topic, partition, end })),
    )
  }
  const rig = {
    pool,
    log,
    live,
    clock,
    now: () => now,
    advance: (ms: number) => {
      now += ms
    },
    deps: { pool, live, clock, codecs: { call: codec }, logger: pino({ level: 'silent' }) },
    start: (over: Partial<Parameters<typeof startProject>[0]> = {}): Running =>
      startProject({
        ...rig.deps,
        source: log.source(),
        ...over,
        limits: { ...fast, ...over.limits },
      }),
    /** A source whose members share partitions with nobody of the stage's own group. */
    otherGroup: (name: string): Source => {
      const real = log.source()
      return { ...real, join: (group, gained) => real.join({ ...group, name }, gained) }
    },
    send: async (...calls: readonly Sent[]): Promise<readonly Message[]> => {
      const messages = calls.map((call) => aMessage(call, now))
      for (const [at, message] of messages.entries())
        await appender.append(calls[at]?.topic ?? 'calls', [
          { key: logKey(message), value: codec.encode(message) },
        ])
      return messages
    },
    /** Every call sent so far is projected. */
    caughtUp: () =>
      until('all calls are projected', async () => {
        const { rows } = await pool.query<{ name: string; next: bigint }>(
          `select topic || '/' || partition as name, next from position where reader = 'project'`,
        )
        const positions = new Map(rows.map(({ name, next }) => [name, next]))
        return (await ends()).every(
          ({ topic, partition, end }) => (positions.get(`${topic}/${partition}`) ?? 0n) >= end,
        )
      }),
    /** The configured audiences are live, as configured. */
    built: () => {
      const all = [...live.now().audiences.values()].sort((a, b) => a.id - b.id)
      const wanted = JSON.stringify(all.map((it) => [it.id, definitionOf(it, all)]))
      return until('all audiences are live', async () => {
        const { rows } = await pool.query<{ id: number; definition: string }>(
          `select audience_id as id, definition from audience_state where state = 'live' order by 1`,
        )
        return JSON.stringify(rows.map(({ id, definition }) => [id, definition])) === wanted
      })
    },
    sweep: async (): Promise<number> => {
      let swept = 0
      const sweepDue = openSweep()
      const { rows } = await pool.query<{ shard: number }>(
        'select distinct shard from ustate where due <= $1',
        [clock()],
      )
      for (const { shard } of rows)
        swept += await pool.transaction(
          (tx) => sweepDue(tx, { shard, at: clock(), limit: 1_000 }),
          { isolation: 'repeatable read' },
        )
      return swept
    },
    /** The user ids in an audience; `null` for each member without one. */
    members: async (audienceId: number): Promise<readonly (string | null)[]> => {
      const { rows } = await pool.query<{ id: string | null }>(
        'select user_id as id from membership where audience_id = $1 and cur order by 1',
        [audienceId],
      )
      return rows.map(({ id }) => id)
    },
    /** What all have: "audience, user id, value", sorted; a member's value is true. */
    answers: async (): Promise<readonly string[]> => {
      const { rows } = await pool.query<{ id: number; userId: string | null; value: string }>(
        `select audience_id as id, user_id as "userId", coalesce(value, 'true') as value
           from membership where cur`,
      )
      return rows.map(({ id, userId, value }) => `${id} ${userId} ${value}`).sort()
    },
    sync: () =>
      pool.transaction(async (tx) => {
        await tx.query('delete from membership where not cur')
        await tx.query('update membership set synced = true where user_id is not null')
      }),
  }
  return rig
}

export type Rig = Awaited<ReturnType<typeof aRig>>

const fast = { ...projectLimits, gatherMs: 1, buildPollMs: 10, retryMs: 5 }

/** As the product keeps it: equal for definitions that say the same. */
const definitionOf = (audience: Audience, all: readonly Audience[]): string => {
  const closed = closedCondition(audience, byKey(all, audience.workspaceId))
  if (!closed.ok) throw new Error(`audience ${audience.id}: ${JSON.stringify(closed.problems)}`)
  const parsed = parseDefinition({ ...audience, condition: closed.json })
  if (!parsed.ok) throw new Error(`audience ${audience.id}: ${JSON.stringify(parsed.problems)}`)
  return definitionText(parsed.definition)
}
