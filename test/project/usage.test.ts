import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { loadCalls, loadTracked } from '../../src/admin/usage-store.ts'
import type { Message } from '../../src/domain/message.ts'
import { monthName, monthOf } from '../../src/domain/usage.ts'
import type { ProjectLimits } from '../../src/project/limits.ts'
import { intoWhat } from '../../src/project/usage-fold.ts'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { callsOf, type Metered, trackedOf } from '../support/naive-usage.ts'
import { mortal } from '../sync/mortal.ts'
import { aRig, codec, type Rig, type Sent, start, until } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
})

const hour = 3_600_000

const usageOf = async (workspaceId = 1) => {
  const days = { workspaceId, from: '2020-01-01', until: '2030-01-01' }
  const calls = await loadCalls(pool, days)
  const months = { workspaceId, from: monthOf(0), until: monthOf(Date.UTC(2030, 0)) }
  const tracked = [...(await loadTracked(pool, months))]
  return {
    calls: Object.fromEntries(
      calls.map(({ sourceId, type, day, calls: n }) => [`${sourceId} ${type} ${day}`, n]),
    ),
    tracked: Object.fromEntries(
      tracked
        .filter(([, { userIds, anonymousIds }]) => userIds + anonymousIds > 0)
        .sort(([left], [right]) => left - right)
        .map(([month, counted]) => [monthName(month), counted]),
    ),
  }
}

/** What stands in the log, partition by partition, whoever reads it. */
const logOf = async (rig: Rig): Promise<Message[][]> => {
  const source = rig.log.source()
  const partitions: Message[][] = []
  for (const topic of ['calls', 'calls.import'] as const)
    for (const [partition, { start: from, end }] of (await source.bounds(topic)).entries()) {
      const messages: Message[] = []
      for await (const { entries } of source.read({ topic, partition, from, until: end }))
        messages.push(...(await codec.decode(entries.map(({ value }) => value))))
      partitions.push(messages)
    }
  return partitions
}

/** A month in which nobody is tracked counts calls all the same. */
const expectedOf = (partitions: readonly (readonly Metered[])[], workspaceId = 1) => ({
  calls: callsOf(partitions, workspaceId),
  tracked: Object.fromEntries(
    Object.entries(trackedOf(partitions, workspaceId)).filter(
      ([, { userIds, anonymousIds }]) => userIds + anonymousIds > 0,
    ),
  ),
})

const metering = async (): Promise<Rig> => {
  const rig = await aRig(pool)
  running.push(rig.start())
  return rig
}

test('calls are counted by source, type and UTC day of receipt, duplicates once', async () => {
  const rig = await metering()
  await rig.send(
    { userId: 'u1', messageId: 'once' },
    { userId: 'u1', messageId: 'once' },
    { userId: 'u1', sourceId: 2 },
    { type: 'page', anonymousId: 'a1', topic: 'calls.import' },
    { type: 'page', anonymousId: 'a1', receivedAt: start + 24 * hour - 1 },
    { type: 'page', anonymousId: 'a1', receivedAt: start + 24 * hour },
  )
  await rig.caughtUp()
  expect((await usageOf()).calls).toEqual({
    '1 track 2026-01-10': 1,
    '2 track 2026-01-10': 1,
    '1 page 2026-01-10': 2,
    '1 page 2026-01-11': 1,
  })
})

test('a call that names nobody is a call all the same, and a delete is none', async () => {
  const rig = await metering()
  await rig.send({ userId: 'null' }, { anonymousId: '0' }, { type: 'delete', userId: 'u1' })
  await rig.caughtUp()
  expect(await usageOf()).toEqual({ calls: { '1 track 2026-01-10': 2 }, tracked: {} })
})

test('a filtered call that is in the log counts as usage and does nothing else', async () => {
  const rig = await metering()
  await rig.send({ userId: 'u1', filtered: 'event_not_planned' })
  await rig.caughtUp()
  expect(await usageOf()).toEqual({
    calls: { '1 track 2026-01-10': 1 },
    tracked: { '2026-01': { userIds: 1, anonymousIds: 0 } },
  })
  expect((await pool.query('select value from identity')).rows).toEqual([])
})

test('an anonymous id counts until any call of its month ties it to a user id', async () => {
  const rig = await metering()
  await rig.send({ anonymousId: 'a1' }, { anonymousId: 'a2' }, { anonymousId: 'a3' })
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 0, anonymousIds: 3 } })
  await rig.send(
    { userId: 'u1', anonymousId: 'a1' },
    { type: 'alias', userId: 'u2', previousId: 'a2' },
    { userId: 'null', anonymousId: 'a3' },
  )
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 2, anonymousIds: 1 } })
  await rig.send({ anonymousId: 'a1' }, { anonymousId: 'a2' })
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 2, anonymousIds: 1 } })
})

test('a tie of one month says nothing of another', async () => {
  const rig = await metering()
  const next = start + 31 * 24 * hour
  await rig.send({ userId: 'u1', anonymousId: 'a1' }, { anonymousId: 'a1', receivedAt: next })
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({
    '2026-01': { userIds: 1, anonymousIds: 0 },
    '2026-02': { userIds: 0, anonymousIds: 1 },
  })
})

test('users who turn out to be one were tracked as two', async () => {
  const rig = await metering()
  await rig.send({ userId: 'u1' }, { type: 'alias', userId: 'u2', previousId: 'u1' })
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 2, anonymousIds: 0 } })
})

test('visitors beyond what a profile can hold are tied to its user all the same', async () => {
  const rig = await metering()
  const visitors = Array.from({ length: 1_100 }, (_, at) => `a${at}`)
  await rig.send(
    ...visitors.map((anonymousId) => ({ type: 'identify', userId: 'u1', anonymousId }) as const),
    ...visitors.slice(900).map((anonymousId) => ({ anonymousId })),
  )
  await rig.caughtUp()
  const { rows } = await pool.query<{ n: number }>(
    `select count(*)::int as n from identity i join ustate u using (user_key) where u.user_id = 'u1'`,
  )
  expect(rows).toEqual([{ n: 1_000 }])
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 1, anonymousIds: 0 } })
})

test('the same id in two workspaces is two', async () => {
  const rig = await metering()
  await rig.send({ userId: 'u1' }, { userId: 'u1', workspaceId: 2, sourceId: 3 })
  await rig.caughtUp()
  for (const workspaceId of [1, 2])
    expect((await usageOf(workspaceId)).tracked).toEqual({
      '2026-01': { userIds: 1, anonymousIds: 0 },
    })
})

const border = Date.UTC(2026, 1, 1)

const aCall: fc.Arbitrary<Sent> = fc
  .record({
    type: fc.constantFrom('track', 'identify', 'page', 'alias', 'group', 'delete'),
    userId: fc.constantFrom(null, null, 'u1', 'u2', 'u3', 'null', ...['x1', 'x2']),
    anonymousId: fc.constantFrom(null, 'a1', 'a2', 'a3', 'a4', 'a5', '0', ...['x1', 'x2']),
    previousId: fc.constantFrom(null, 'a1', 'a2', 'a6', 'u1', 'x1', 'anonymous'),
    workspaceId: fc.constantFrom(1, 1, 1, 2),
    sourceId: fc.constantFrom(1, 2),
    messageId: fc.integer({ min: 1, max: 60 }).map((n) => `m${n}`),
    // Both sides of the border, in turns, as partitions that lag would bring them.
    receivedAt: fc.integer({ min: -90, max: 90 }).map((minutes) => border + minutes * 60_000),
    topic: fc.constantFrom('calls', 'calls', 'calls', 'calls.import'),
  })
  // A source is of one workspace.
  .map((call) => ({ ...call, sourceId: call.workspaceId * 10 + call.sourceId }))
  // A deletion names somebody.
  .map((call) => (call.type === 'delete' ? { ...call, userId: call.userId ?? 'u1' } : call))

const history = fc.record({
  calls: fc.array(aCall, { minLength: 1, maxLength: 120 }),
  kills: fc.array(fc.record({ at: fc.integer({ min: 5, max: 60 }), after: fc.boolean() }), {
    maxLength: 2,
  }),
})

/** Folds and forgets all the time, so that nothing may rest on either. */
const restless: Partial<ProjectLimits> = {
  batchCallsMax: 7,
  usageFoldMs: 3,
  sightingCacheBytesMax: 2_000,
}

const lived = async ({
  calls,
  kills,
}: {
  calls: Sent[]
  kills: { at: number; after: boolean }[]
}) => {
  const rig = await aRig(pool)
  // Both months are over, so that ids are folded into pages as soon as they are stored.
  rig.advance(60 * 24 * hour)
  const third = Math.ceil(calls.length / 3)
  running.push(rig.start({ limits: restless }), rig.start({ limits: restless }))
  await rig.send(...calls.slice(0, third))
  for (const { at, after } of kills) {
    const source = rig.log.source()
    const death = { at, when: after ? ('after' as const) : ('before' as const) }
    const dying = mortal({ pool, source, appender: rig.log.appender() }, death)
    const doomed = rig.start({ pool: dying.pool, source: dying.source, limits: restless })
    running.push(doomed)
    await rig.send(...calls.slice(third, 2 * third))
    await Promise.race([doomed.done.catch(() => undefined), rig.caughtUp()])
    source.vanish()
  }
  await rig.send(...calls.slice(2 * third))
  await rig.caughtUp()
  return rig
}

test('whatever is sent, whoever dies: what is metered is what the log says', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (told) => {
      try {
        const log = await logOf(await lived(told))
        for (const workspaceId of [1, 2])
          expect(await usageOf(workspaceId)).toEqual(expectedOf(log, workspaceId))
      } finally {
        await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
      }
    }),
    { numRuns: Number(process.env['FC_RUNS'] ?? 20), endOnFailure: true },
  )
})

test.each([
  [{ rows: 1, bytes: 16, foldedBytes: 0 }, false, 'nothing'],
  [{ rows: 1, bytes: 16, foldedBytes: 0 }, true, 'pages'],
  [{ rows: 64, bytes: 1_024, foldedBytes: 0 }, false, 'one'],
  [{ rows: 2, bytes: 262_144, foldedBytes: 2_097_152 }, false, 'pages'],
  [{ rows: 2, bytes: 262_144, foldedBytes: 2_097_160 }, false, 'nothing'],
  [{ rows: 90, bytes: 262_144, foldedBytes: 2_097_160 }, false, 'one'],
])('what waits as %j, its month over: %s, is folded into %s', (waiting, isOver, into) => {
  expect(intoWhat(waiting, { isOver })).toBe(into)
})

test('many small batches leave one row, and count the same', async () => {
  const rig = await aRig(pool)
  running.push(rig.start({ limits: { batchCallsMax: 1, usageFoldMs: 5 } }))
  const ids = Array.from({ length: 150 }, (_, at) => at)
  await rig.send(...ids.map((at) => ({ userId: `u${at % 100}`, anonymousId: `a${at}` })))
  await rig.caughtUp()
  await until('rows were gathered', async () => {
    const { rows } = await pool.query('select from usage_sighting')
    return rows.length < 64
  })
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 100, anonymousIds: 0 } })
  expect((await pool.query('select from usage_page')).rows).toHaveLength(0)
})

test('a month that is over is folded into pages, and counts the same', async () => {
  const rig = await aRig(pool)
  running.push(rig.start({ limits: { usageFoldMs: 5 } }))
  const ids = Array.from({ length: 600 }, (_, at) => at)
  await rig.send(...ids.map((at) => ({ userId: `u${at % 500}`, anonymousId: `a${at}` })))
  await rig.send(...ids.map((at) => ({ anonymousId: `b${at}` })))
  await rig.caughtUp()
  const before = await usageOf()
  expect(before.tracked).toEqual({ '2026-01': { userIds: 500, anonymousIds: 600 } })
  rig.advance(40 * 24 * hour)
  await until('the month is folded', async () => {
    const { rows } = await pool.query('select from usage_sighting')
    return rows.length === 0
  })
  expect(await usageOf()).toEqual(before)
  await rig.send(
    { anonymousId: 'b1', userId: 'u1', receivedAt: start },
    { anonymousId: 'c1', receivedAt: start },
  )
  await rig.caughtUp()
  expect((await usageOf()).tracked).toEqual({ '2026-01': { userIds: 500, anonymousIds: 600 } })
})
