import { afterEach, expect, test } from 'vitest'
import type { Audience } from '../../src/domain/configuration.ts'
import { Fault } from '../../src/fault.ts'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { mortal } from '../sync/mortal.ts'
import { aRig, audience, day, performed, type Rig, type Sent, until } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop().catch(() => undefined)))
})

const stopAll = async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
}

const users = Array.from({ length: 30 }, (_, at) => `u${at}`)

/** Calls of many users over 40 days, some sent twice, some anonymous at first. */
const history = (rig: Rig, round: number): readonly Sent[] =>
  users.flatMap((userId, at): readonly Sent[] => {
    const timestamp = rig.now() - ((at * 7 + round * 3) % 40) * day
    const messageId = `${userId}-${round}`
    const call = { messageId, timestamp, properties: { price: (at * 13 + round) % 50 } }
    if ((at + round) % 3 === 0)
      return [
        { ...call, userId },
        { ...call, userId },
      ]
    if ((at + round) % 3 === 1) return [{ ...call, anonymousId: `a${at}` }]
    return [
      { ...call, userId },
      {
        type: 'identify',
        userId,
        anonymousId: `a${at}`,
        traits: { round },
        messageId: `i-${messageId}`,
      },
    ]
  })

const conditions = [
  performed('gte', 2, '30d'),
  performed('eq', 0),
  {
    event: {
      name: 'Ordered',
      where: { prop: 'price', op: 'lt', value: 25 },
      window: { last: '20d' },
    },
    count: { op: 'eq', value: 1 },
  },
  { any: [{ trait: 'round', op: 'gte', value: 3 }, { not: performed('gte', 3) }] },
  // A leaf that keeps its events by what they are compared with.
  {
    event: { name: 'Ordered', where: { prop: 'price', op: 'gt', ref: 'trait:round' } },
    count: { op: 'gte', value: 2 },
  },
]

const audiences = conditions.map((condition, at) => audience(at + 1, condition))

const allMembers = async (rig: Rig, of: readonly Audience[]) => {
  await rig.caughtUp()
  await rig.built()
  await rig.sweep()
  return Promise.all(of.map(({ id }) => rig.members(id)))
}

/** What the same calls give when the audiences were there from the start. */
const expected = async (rounds: number) => {
  const rig = await aRig(pool, audiences)
  running.push(rig.start())
  await rig.built()
  for (let round = 0; round < rounds; round++) await rig.send(...history(rig, round))
  const members = await allMembers(rig, audiences)
  await stopAll()
  return members
}

test('P6: audiences created in the middle of traffic equal those that were there from the start', async () => {
  const members = await expected(6)
  expect(new Set(members.map(({ length }) => length)).size).toBeGreaterThan(1)
  const rig = await aRig(pool)
  running.push(
    rig.start({ limits: { historyCallsMax: 7, evaluateUsersMax: 4, batchCallsMax: 11 } }),
  )
  for (let round = 0; round < 6; round++) {
    const sending = rig.send(...history(rig, round))
    if (round >= 2) rig.live.replace({ audiences: audiences.slice(0, round - 1) })
    await sending
  }
  rig.live.replace({ audiences })
  expect(await allMembers(rig, audiences)).toEqual(members)
})

test('an archive that cannot be read holds up the build until it can, and nothing else', async () => {
  const rig = await aRig(pool)
  await rig.send({ userId: 'u1' }, { userId: 'u2' })
  const source = rig.log.source()
  let isDamaged = true
  let tries = 0
  const stage = rig.start({
    limits: { buildPollMs: 1 },
    history: {
      ...source,
      read: (range) => {
        tries += 1
        if (isDamaged) throw new Fault('archive_damaged', 'broken by the test')
        return source.read(range)
      },
    },
  })
  running.push(stage)
  await rig.caughtUp()
  rig.live.replace({ audiences: [audience(1, performed('gte', 1))] })
  await until('it was tried twice', async () => tries >= 2)
  await rig.send({ userId: 'u3' })
  await rig.caughtUp()
  isDamaged = false
  expect(await allMembers(rig, [audience(1, performed('gte', 1))])).toEqual([['u1', 'u2', 'u3']])
})

test('P9: a build killed at any await is finished by another process, and counts everything once', async () => {
  const members = await expected(4)
  for (const at of [5, 12, 18, 24, 30, 37, 44, 52, 60])
    for (const when of ['before', 'after'] as const) {
      const rig = await aRig(pool)
      running.push(rig.start())
      for (let round = 0; round < 3; round++) await rig.send(...history(rig, round))
      await rig.caughtUp()
      await stopAll()
      rig.live.replace({ audiences })
      const source = rig.log.source()
      const dying = mortal({ pool, source, appender: rig.log.appender() }, { at, when })
      const limits = { historyCallsMax: 40, evaluateUsersMax: 10 }
      const doomed = rig.start({ pool: dying.pool, source: dying.source, limits })
      await Promise.race([doomed.done.catch(() => undefined), rig.built().catch(() => undefined)])
      source.vanish()
      await doomed.stop().catch(() => undefined)
      running.push(rig.start())
      await rig.send(...history(rig, 3))
      expect([at, when, await allMembers(rig, audiences)]).toEqual([at, when, members])
      await stopAll()
    }
}, 300_000)

test('two projectors build an audience once', async () => {
  const members = await expected(3)
  const rig = await aRig(pool)
  const limits = { historyCallsMax: 5, evaluateUsersMax: 3 }
  running.push(rig.start({ limits }), rig.start({ limits }))
  for (let round = 0; round < 2; round++) await rig.send(...history(rig, round))
  rig.live.replace({ audiences })
  await rig.send(...history(rig, 2))
  expect(await allMembers(rig, audiences)).toEqual(members)
  const { rows } = await pool.query('select distinct version from audience_state')
  expect(rows).toEqual([{ version: 1n }])
})

test('an edited audience becomes a new version, and keeps what was synced of the old one', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 1))])
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' }, { userId: 'u2' }, { userId: 'u2' }, { userId: 'u2' })
  await rig.caughtUp()
  await rig.sync()
  rig.live.replace({ audiences: [audience(1, performed('gte', 3))] })
  expect(await allMembers(rig, [audience(1, {})])).toEqual([['u2']])
  const { rows } = await pool.query('select user_id, cur, synced from membership order by user_id')
  expect(rows).toEqual([
    { user_id: 'u1', cur: false, synced: true },
    { user_id: 'u2', cur: true, synced: true },
  ])
  const { rows: states } = await pool.query('select version, state from audience_state')
  expect(states).toEqual([{ version: 2n, state: 'live' }])
})

test('M4: an edit that says the same builds nothing', async () => {
  const both = (order: readonly object[]) => audience(1, { all: order })
  const [one, two] = [performed('gte', 1), { trait: 'a', op: 'absent' }]
  const rig = await aRig(pool, [both([one, two])])
  running.push(rig.start())
  await rig.built()
  rig.live.replace({ audiences: [both([two, one]), audience(2, one)] })
  await rig.send({ userId: 'u1' })
  const { rows } = await waitForTwo(rig)
  expect(rows).toEqual([
    { id: 1, version: 1n },
    { id: 2, version: 1n },
  ])
})

const waitForTwo = async (rig: Rig) => {
  await rig.caughtUp()
  for (;;) {
    const found = await pool.query(
      `select audience_id as id, version from audience_state where state = 'live' order by 1`,
    )
    if (found.rows.length === 2) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('a deleted audience goes with its memberships, and a later one of the same leaf counts anew', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 2))])
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  rig.live.replace({ audiences: [] })
  await rig.built()
  expect((await pool.query('select id from leaf')).rows).toEqual([])
  await rig.send({ userId: 'u1' }, { userId: 'u2' })
  await rig.caughtUp()
  rig.live.replace({ audiences: [audience(2, performed('gte', 2))] })
  expect(await allMembers(rig, [audience(2, {})])).toEqual([['u1']])
  const { rows } = await pool.query('select distinct audience_id as id from membership')
  expect(rows).toEqual([{ id: 2 }])
})

test('a process with an older configuration does not take away what it does not know yet', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 1))])
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' })
  rig.live.replace({
    audiences: [audience(1, performed('gte', 1)), audience(2, performed('eq', 1))],
  })
  await allMembers(rig, [])
  await stopAll()
  const old = {
    now: () => ({ ...rig.live.now(), version: 1n, audiences: new Map() }),
    onChange: () => () => undefined,
  }
  running.push(rig.start({ live: old, limits: { buildPollMs: 1 } }))
  await rig.send({ userId: 'u2' })
  await rig.caughtUp()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect([await rig.members(1), await rig.members(2)]).toEqual([
    ['u1', 'u2'],
    ['u1', 'u2'],
  ])
})
