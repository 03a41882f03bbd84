import { afterEach, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aRig, audience, day, performed, type Rig } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

const projecting = async (...conditions: readonly object[]): Promise<Rig> => {
  const rig = await aRig(
    pool,
    conditions.map((condition, at) => audience(at + 1, condition)),
  )
  running.push(rig.start())
  await rig.built()
  return rig
}

test('who performed an event often enough is a member', async () => {
  const rig = await projecting(performed('gte', 2))
  await rig.send(
    { userId: 'u1' },
    { userId: 'u2' },
    { userId: 'u1' },
    { userId: 'u2', event: 'Seen' },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
})

test('who never did something is a member from the first sight of them', async () => {
  const rig = await projecting(performed('eq', 0), { not: performed('gte', 1) })
  await rig.send(
    { userId: 'u1', type: 'page' },
    { userId: 'u2' },
    { anonymousId: 'a1', event: 'Seen' },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', null])
  expect(await rig.members(2)).toEqual(['u1', null])
})

test('a property counts beside the trait it is compared with as that is now', async () => {
  const abroad = { not: { prop: 'city', op: 'eq', ref: 'trait:city' } }
  const where = { all: [abroad, { prop: 'price', op: 'gte', value: 10 }] }
  const event = { name: 'Ordered', where, window: { last: '30d' } }
  const rig = await projecting({ event, count: { op: 'gte', value: 2 } })
  const inCity = (userId: string, city: string) => ({
    ...{ userId, type: 'identify' as const },
    traits: { city },
  })
  const ordered = (userId: string, city: string, price = 10) => ({
    ...{ userId, properties: { city, price } },
  })
  await rig.send(
    ...[inCity('u1', 'Cork'), ordered('u1', 'Oslo'), ordered('u1', 'Cork'), ordered('u1', 'Rome')],
    ...[
      inCity('u2', 'Oslo'),
      ordered('u2', 'Oslo'),
      ordered('u2', 'Rome'),
      ordered('u2', 'Rome', 9),
    ],
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  await rig.send(inCity('u1', 'Rome'), ordered('u1', 'Rome'), inCity('u2', 'Cork'))
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', 'u2'])
  await rig.send(inCity('u1', 'Oslo'), inCity('u2', 'Rome'))
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  rig.advance(31 * day)
  await rig.sweep()
  expect(await rig.members(1)).toEqual([])
})

test('only events that pass the filter count', async () => {
  const where = {
    any: [
      { prop: 'price', op: 'gte', value: 100 },
      { prop: 'vip', op: 'eq', value: true },
    ],
  }
  const rig = await projecting({
    event: { name: 'Ordered', where },
    count: { op: 'gte', value: 1 },
  })
  await rig.send(
    { userId: 'u1', properties: { price: 99 } },
    { userId: 'u2', properties: { price: 100 } },
    { userId: 'u3', properties: { vip: 'true' } },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u2', 'u3'])
})

test('traits decide by their newest write, and null takes one away', async () => {
  const rig = await projecting({ trait: 'plan.tier', op: 'eq', value: 'gold' })
  const identify = (userId: string, tier: object | null, timestamp: number) =>
    ({ type: 'identify', userId, traits: { plan: tier }, timestamp }) as const
  const gold = { tier: 'gold' }
  await rig.send(
    identify('u1', gold, 2_000),
    identify('u1', { tier: 'free' }, 1_000),
    identify('u2', gold, 1_000),
    identify('u2', null, 2_000),
    identify('u3', null, 1_000),
    identify('u3', gold, 2_000),
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', 'u3'])
  await rig.send(identify('u1', { tier: 'free' }, 3_000))
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u3'])
})

test('users leave and enter as time goes by, without new events', async () => {
  const rig = await projecting(performed('gte', 1, '2h'), performed('lt', 1, '2h'))
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  await rig.sync()
  rig.advance(2 * 3_600_000 - 1)
  expect(await rig.sweep()).toBe(0)
  expect([await rig.members(1), await rig.members(2)]).toEqual([['u1'], []])
  rig.advance(1)
  expect(await rig.sweep()).toBe(1)
  expect([await rig.members(1), await rig.members(2)]).toEqual([[], ['u1']])
  expect(await rig.sweep()).toBe(0)
  const { rows } = await pool.query('select cur, synced from membership where audience_id = 1')
  expect(rows).toEqual([{ cur: false, synced: true }])
})

test('a row of someone neither in nor synced as in does not exist', async () => {
  const rig = await projecting(performed('eq', 1))
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  expect((await pool.query('select * from membership')).rows).toEqual([])
})

test('late and imported events count where their time puts them', async () => {
  const rig = await projecting(performed('gte', 2, '30d'))
  await rig.send({ userId: 'u1' }, { userId: 'u2' })
  await rig.send(
    { userId: 'u1', topic: 'calls.import', timestamp: rig.now() - 29 * day },
    { userId: 'u2', topic: 'calls.import', timestamp: rig.now() - 31 * day },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  rig.advance(2 * day)
  await rig.sweep()
  expect(await rig.members(1)).toEqual([])
})

test('P5: a message sent twice counts once', async () => {
  const rig = await projecting(performed('gte', 2))
  await rig.send({ userId: 'u1', messageId: 'same' }, { userId: 'u1', messageId: 'same' })
  await rig.caughtUp()
  await rig.send({ userId: 'u1', messageId: 'same' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual([])
})

test('workspaces do not see each other’s users', async () => {
  const rig = await aRig(pool, [
    audience(1, performed('gte', 2)),
    audience(2, performed('gte', 1), { workspaceId: 2 }),
  ])
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u1' }, { userId: 'u1', workspaceId: 2 })
  await rig.caughtUp()
  expect([await rig.members(1), await rig.members(2)]).toEqual([[], ['u1']])
})

test('a position says the highest receivedAt folded, and a stopped projector goes on where it was', async () => {
  const rig = await projecting(performed('gte', 2))
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  await Promise.all(running.splice(0).map((each) => each.stop()))
  rig.advance(5_000)
  await rig.send({ userId: 'u1' })
  running.push(rig.start())
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  const { rows } = await pool.query<{ folded: bigint }>(
    `select max(('x' || encode(state, 'hex'))::bit(64)::bigint) as folded from position`,
  )
  expect(Number(rows[0]?.folded)).toBe(rig.now())
})

test('P4: many calls of many users in small batches come to the same', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 3))])
  running.push(
    rig.start({ limits: { ...{ batchCallsMax: 7, queueCallsMax: 20, userCacheBytesMax: 5_000 } } }),
  )
  await rig.built()
  const users = Array.from({ length: 40 }, (_, at) => `u${at}`)
  for (let round = 0; round < 3; round++) await rig.send(...users.map((userId) => ({ userId })))
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(users.toSorted())
})
