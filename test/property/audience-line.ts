// A whole line, projector and sync on a real Postgres, playing one history for many audiences at once.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import { partitionsOf } from '../../src/log/partitions.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { startSync } from '../../src/sync/sync.ts'
import { answers } from '../oracle/oracle.ts'
import { peopleOf } from '../oracle/people.ts'
import { aRig, audience, type Sent, until } from '../project/rig.ts'
import { aDestination } from '../support/configuration.ts'
import type { Call, Condition, Json } from '../support/language.ts'
import { changesBetween, withoutDuplicates } from '../support/told.ts'
import { type Definition, someDefinitions } from './audience-definitions.ts'
import {
  advanced,
  type Said,
  type Step,
  saidByAnyone,
  someSteps,
  starts,
  withoutOrder,
} from './audience-history.ts'
import { cameTo, codecs, line, lineOf, nameOf, outboundOf, type Told } from './audience-told.ts'
import { type Forgotten, openForgetting } from './forgetting.ts'

const day = 86_400_000

/** What may happen before a step. */
type Turn = 'none' | 'restart' | 'repeat' | 'same' | 'swap'

export type LineScene = {
  readonly start: number
  readonly definitions: readonly Definition[]
  /** `forgotten`: who is deleted before the calls. */
  readonly steps: readonly (Step & { readonly turn: Turn; readonly forgotten: Forgotten | null })[]
  /** Before which step each audience is there: those of a key divisible by it wait for `from`. */
  readonly late: { readonly every: number; readonly from: number }
  /** Of the log, read by two projectors where there are several. */
  readonly partitions: number
  readonly limits: {
    readonly batchCallsMax: number
    readonly historyCallsMax: number
    readonly evaluateUsersMax: number
  }
}

const turns = fc.constantFrom<Turn>(
  ...(['none', 'none', 'none', 'none', 'restart', 'repeat', 'same', 'swap'] as const),
)

const forgotten = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  fc.constantFrom<Forgotten>(
    ...['u1', 'u2', 'u3', 'never'].map((value) => ({ kind: 'user', value }) as const),
    { kind: 'anonymous', value: 'a1' },
  ),
)

/** Several partitions have no order among each other: each visitor is of one user there. */
const saidIn = (partitions: number): fc.Arbitrary<Said> =>
  partitions === 1 ? saidByAnyone : saidByAnyone.map(withoutOrder)

export const lineScene = (
  traits: number,
  audiences: number,
  partitions = 1,
): fc.Arbitrary<LineScene> =>
  fc.record({
    partitions: fc.constant(partitions),
    start: fc.constantFrom(...starts),
    definitions: someDefinitions(traits, audiences),
    steps: someSteps(saidIn(partitions), { min: 4, max: 9, calls: 6 }).chain((steps) =>
      fc
        .array(fc.record({ turn: turns, forgotten }), {
          minLength: steps.length,
          maxLength: steps.length,
        })
        .map((list) =>
          steps.map((step, at) => ({ ...step, ...(list[at] as (typeof list)[number]) })),
        ),
    ),
    late: fc.record({ every: fc.constantFrom(2, 3, 5), from: fc.nat({ max: 6 }) }),
    limits: fc.record({
      batchCallsMax: fc.constantFrom(1, 2, 3, 500),
      historyCallsMax: fc.constantFrom(1, 2, 500),
      evaluateUsersMax: fc.constantFrom(1, 2, 500),
    }),
  })

/** Throws at the first sync that said or left something other than the naive evaluator. */
export const playLine = async (pool: Pool, scene: LineScene): Promise<void> => {
  const line = await openLine(pool, scene)
  try {
    await line.change(0)
    for (const [at, step] of scene.steps.entries()) {
      await line.change(at, step.turn)
      await line.forget(step.forgotten)
      await line.send(step)
      await line.synced(at)
    }
  } finally {
    await line.stop()
  }
}

const whole = {
  late: { every: 2, from: 0 },
  partitions: 1,
  limits: { batchCallsMax: 5_000, historyCallsMax: 5_000, evaluateUsersMax: 5_000 },
}

type Opening = Pick<LineScene, 'start' | 'definitions'> & Partial<LineScene>

export const openLine = async (pool: Pool, scene: Opening) => {
  const { start, definitions, late, limits, partitions } = { ...whole, ...scene }
  const rig = await aRig(pool, [], { ...partitionsOf(1), calls: partitions })
  await pool.query('truncate sync_run, sync_chunk, sync_schedule, outbox restart identity')
  await pool.query('update outbox_shard set seq = 0')
  await pool.query('update relay set bounds = null')
  rig.advance(start - rig.now())
  // All definitions are read at each look.
  const limited = { ...limits, buildPollMs: 40 }
  const log: Call[] = []
  const before = new Map<string, Map<string, Json>>()
  const early: Told[] = []
  let last: readonly Sent[] = []
  let now = definitions
  let there = definitions
  const { suppressions, forget, close } = await openForgetting(rig)
  const startProjectors = () =>
    Array.from({ length: Math.min(partitions, 2) }, () =>
      rig.start({ limits: limited, suppressions }),
    )
  const stopProjectors = () => Promise.all(projectors.map((projector) => projector.stop()))
  let projectors: readonly Running[] = startProjectors()
  const [source, appender] = [rig.log.source(), rig.log.appender()]
  const sync = startSync({ ...rig.deps, source, appender, codecs })
  const outbound = outboundOf(rig)
  const isLate = (index: number) =>
    definitions[index]?.kind === 'audience' && index % late.every === 1
  const edit = (turn: Turn) => {
    if (turn === 'same') now = now.map(saidOtherwise)
    if (turn === 'swap') now = swapped(now)
  }
  const publish = () => {
    const audiences = there.map((it) => configured(it, now.indexOf(it)))
    rig.live.replace({ audiences, destinations: [aDestination()] })
  }
  const synced = async (): Promise<readonly Told[]> => {
    await rig.built()
    const ids = there.map((it) => now.indexOf(it) + 1)
    const run = await requestSync(pool, { audienceIds: ids, at: rig.clock() })
    await until(
      `run ${run} is finished`,
      async () => (await findSyncRun(pool, run))?.state === 'finished',
    )
    return [...early.splice(0), ...(await outbound())]
  }
  /**
   * What is left to tell of a new version is told as soon as it is built: at any instant of the step in which it was
   * made, and so perhaps more than once. What counts is what it comes to.
   */
  let isMade = false
  const known = ({ key, userId }: Told) => before.get(key)?.get(userId)
  /** Told by `sync`, by key and user. */
  const said = new Map<string, Json>()
  return {
    change: async (at: number, turn: Turn = 'none') => {
      if (turn === 'restart') {
        await stopProjectors()
        projectors = startProjectors()
      }
      const isChanged = at === 0 || at === late.from || turn === 'same' || turn === 'swap'
      if (!isChanged) return
      isMade = true
      edit(turn)
      const absent = new Set(
        at < late.from ? definitions.filter((_, index) => isLate(index)).map(({ key }) => key) : [],
      )
      there = now.filter((it) => !absent.has(it.key) && !refersTo(it, absent, now))
      publish()
    },
    /** All of them from now on, of the same keys in the same order. */
    define: (all: readonly Definition[]) => {
      isMade = true
      now = all
      there = all
      publish()
    },
    /** Nobody is told of it: whoever comes back under the same id begins with nothing. */
    forget: async (subject: Forgotten | null) => {
      if (subject === null) return
      const { kind, value } = subject
      const person = peopleOf(withoutDuplicates(log)).find(({ identities }) =>
        identities.includes(`${kind} ${value}`),
      )
      log.push(await forget(subject))
      const ids = (person?.identities ?? []).map((identity) => identity.replace(/^user /, ''))
      for (const id of ids) for (const told of before.values()) told.delete(id)
      // A new version may have told of them already.
      early.push(...(await outbound()).filter(({ userId }) => !ids.includes(userId)))
    },
    send: async (step: LineScene['steps'][number]) => {
      const times = log.map(({ timestamp, receivedAt }) => Math.min(timestamp, receivedAt))
      rig.advance(advanced(rig.now(), step, times) - rig.now())
      const said: readonly Sent[] = [
        ...(step.turn === 'repeat' ? last : []),
        ...step.said.map(({ ago, ...call }: Said) => ({ ...call, timestamp: rig.now() - ago })),
      ]
      const messages = await rig.send(...said)
      last = said.map((call, at) => ({ ...call, messageId: messages[at]?.messageId as string }))
      log.push(...messages.map(asCall))
    },
    advanceTo: (at: number) => rig.advance(at - rig.now()),
    /** Calls of the past, as they were received then. */
    say: async (calls: readonly Call[]) => {
      await rig.send(...(calls as readonly Sent[]))
    },
    sync: async () => {
      const told = cameTo(await synced(), (it) => said.get(nameOf(it)))
      for (const it of told) said.set(nameOf(it), it.value)
      return told.map(lineOf).sort()
    },
    /** What was said to be told, "key, user id, value", where it is what the naive evaluator says. */
    synced: async (at: number): Promise<readonly string[]> => {
      const all = await synced()
      const told = (isMade ? cameTo(all, known) : all).map(lineOf)
      isMade = false
      const held = await rig.answers()
      const calls = withoutDuplicates(log)
      for (const definition of there) {
        const { key } = definition
        const id = now.indexOf(definition) + 1
        const { named, nameless } = answers(calls, { ...definition, others: now }, rig.now())
        const expected = changesBetween(definition, before.get(key) ?? new Map(), named)
        before.set(key, new Map(named))
        const where = `${key} at step ${at}: ${JSON.stringify(definition)}`
        expect(told.filter((it) => it.startsWith(`${key} `)).sort(), `told of ${where}`).toEqual(
          expected.map(({ userId, value }) => line(key, userId, value)).sort(),
        )
        expect(
          held.filter((it) => it.startsWith(`${id} `)),
          `held of ${where}`,
        ).toEqual(
          [...named, ...nameless.map((value) => [null, value] as const)]
            .map(([userId, value]) => line(id, userId, value))
            .sort(),
        )
      }
      return told
    },
    stop: async () => {
      await Promise.all([stopProjectors(), sync.stop()])
      await close()
    },
  }
}

const configured = ({ key, condition, ...over }: Definition, index: number) =>
  // Only syncs that are asked for: one of the schedule's own might fall between two calls of a step.
  audience(index + 1, condition, { ...over, key, name: key, syncEveryMs: 100_000 * day })

/** Whether it refers to one that is not there, also by way of others. */
const refersTo = (
  { condition }: Definition,
  absent: ReadonlySet<string>,
  all: readonly Definition[],
): boolean =>
  [...JSON.stringify(condition).matchAll(/"audience":"(a\d+)"/g)].some(([, key]) => {
    const found = all.find((it) => it.key === key)
    return absent.has(key as string) || (found !== undefined && refersTo(found, absent, all))
  })

/** The same in other words. */
const saidOtherwise = (it: Definition): Definition => {
  if (it.kind === 'trait') return it
  const otherwise = (said: Condition): Condition => ({ all: [{ not: { not: said } }] })
  const { condition } = it
  return 'users' in condition
    ? {
        ...it,
        condition: { users: { ...condition.users, where: otherwise(condition.users.where) } },
      }
    : { ...it, condition: otherwise(condition) }
}

/** The last two audiences get each other's definition, as an edit of both. */
const swapped = (all: readonly Definition[]): readonly Definition[] => {
  const [left, right] = all.slice(-2) as [Definition, Definition]
  const free = [left, right].every(
    (it) => it?.kind === 'audience' && !JSON.stringify(it).includes('"audience":'),
  )
  // An audience of users is never turned into one of accounts.
  if (!free || 'users' in left.condition !== 'users' in right.condition) return all
  return [...all.slice(0, -2), { ...right, key: left.key }, { ...left, key: right.key }]
}

const asCall = (message: Message): Call =>
  ({ ...message, ...JSON.parse(Buffer.from(message.body).toString()) }) as Call
