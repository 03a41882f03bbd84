import { afterEach, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aRig, audience, performed, type Rig } from './rig.ts'

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

const rows = async (audienceId: number) =>
  (
    await pool.query(
      `select user_id as "userId", cur, synced from membership where audience_id = $1 order by 1`,
      [audienceId],
    )
  ).rows

const living = async () =>
  (
    await pool.query(
      `select user_id as "userId" from ustate where merged_into is null order by 1 nulls last`,
    )
  ).rows.map(({ userId }) => userId)

test('an anonymous member is emitted as the user they turn out to be', async () => {
  const rig = await projecting(performed('gte', 2))
  await rig.send({ anonymousId: 'a1' }, { anonymousId: 'a1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual([null])
  await rig.send({ type: 'identify', anonymousId: 'a1', userId: 'u1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  expect(await living()).toEqual(['u1'])
})

test('P7: what a visitor did before and what the user did elsewhere is one history', async () => {
  const rig = await projecting(performed('gte', 3))
  await rig.send({ anonymousId: 'a1' }, { userId: 'u1' }, { anonymousId: 'a1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual([])
  await rig.send({ type: 'identify', anonymousId: 'a1', userId: 'u1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  expect(await living()).toEqual(['u1'])
  const merges = await pool.query('select from_key <> into_key as differ from merge')
  expect(merges.rows).toEqual([{ differ: true }])
})

test('a vanished visitor’s calls go on counting for the user', async () => {
  const rig = await projecting(performed('gte', 2))
  await rig.send({ anonymousId: 'a1' }, { userId: 'u1', event: 'Seen' })
  await rig.caughtUp()
  await rig.send({ type: 'identify', anonymousId: 'a1', userId: 'u1' })
  await rig.caughtUp()
  await rig.send({ anonymousId: 'a1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
})

test('a visitor who is somebody else already stays who they are', async () => {
  const rig = await projecting(performed('gte', 2))
  const identify = (userId: string) => ({ type: 'identify', anonymousId: 'a1', userId }) as const
  await rig.send(identify('u1'), { anonymousId: 'a1' })
  await rig.caughtUp()
  await rig.send(identify('u2'), { anonymousId: 'a1' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1'])
  expect(await living()).toEqual(['u1', 'u2'])
})

test('an alias makes the new user id the one person, and the old one leaves', async () => {
  const rig = await projecting(performed('gte', 2), { trait: 'plan', op: 'eq', value: 'gold' })
  await rig.send(
    { userId: 'old' },
    { userId: 'old' },
    { type: 'identify', userId: 'old', traits: { plan: 'gold' } },
  )
  await rig.caughtUp()
  await rig.sync()
  await rig.send({ type: 'alias', previousId: 'old', userId: 'new' })
  await rig.caughtUp()
  for (const audienceId of [1, 2])
    expect(await rows(audienceId)).toEqual([
      { userId: 'new', cur: true, synced: false },
      { userId: 'old', cur: false, synced: true },
    ])
  await rig.send({ type: 'identify', userId: 'old', traits: { plan: null } })
  await rig.caughtUp()
  expect(await rig.members(2)).toEqual([])
  expect(await living()).toEqual(['new'])
})

test('merges follow one another within one batch', async () => {
  const rig = await projecting(performed('gte', 4))
  await Promise.all(running.splice(0).map((each) => each.stop()))
  const alias = (previousId: string, userId: string) =>
    ({ type: 'alias', previousId, userId }) as const
  await rig.send(
    ...[{ anonymousId: 'a1' }, { userId: 'u1' }, { userId: 'u2' }, { userId: 'u3' }],
    { type: 'identify', anonymousId: 'a1', userId: 'u1' },
    alias('u1', 'u2'),
    alias('u2', 'u3'),
  )
  running.push(rig.start())
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u3'])
  expect(await living()).toEqual(['u3'])
  const { rows: known } = await pool.query(
    'select count(distinct user_key)::int as n from identity',
  )
  expect(known).toEqual([{ n: 1 }])
})

test('a blocked user id names nobody', async () => {
  const rig = await projecting(performed('eq', 0))
  await rig.send(
    { type: 'identify', userId: 'null', anonymousId: 'a1' },
    { type: 'identify', userId: '0', anonymousId: 'a2' },
    { userId: '-1', event: 'Seen' },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual([null, null])
  expect(await living()).toEqual([null, null])
})

test('a profile takes in no more than 100 others', async () => {
  const rig = await projecting(performed('gte', 1))
  const visitors = Array.from({ length: 102 }, (_, at) => `a${at}`)
  await rig.send(
    { userId: 'u1', event: 'Seen' },
    ...visitors.map((anonymousId) => ({ anonymousId })),
  )
  await rig.caughtUp()
  for (const anonymousId of visitors)
    await rig.send({ type: 'identify', anonymousId, userId: 'u1' })
  await rig.caughtUp()
  expect(await living()).toEqual(['u1', null, null])
})
