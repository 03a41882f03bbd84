// Batches fold into users as they are remembered: what somebody else wrote of them meanwhile must win.
import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { usersAsPacked } from '../../src/audience/packed-users.ts'
import { loadPlan } from '../../src/audience/plan.ts'
import { newUser } from '../../src/audience/state.ts'
import { prepareSession, replaceUsers } from '../../src/audience/store.ts'
import { logKey } from '../../src/domain/message.ts'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aMessage, aRig, audience, codec } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

beforeEach(async () => {
  await pool.query('truncate ustate, identity, membership')
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

type Stored = { readonly key: number; readonly ver: number; readonly st: Buffer }

const stored = async (userId: string): Promise<Stored> => {
  const { rows } = await pool.query<Stored>(
    'select user_key::float8 as key, ver::float8 as ver, st from ustate where user_id = $1',
    [userId],
  )
  return rows[0] as Stored
}

const twice = {
  event: { name: 'Order Completed' },
  count: { op: 'eq', value: 2 },
}

/** One, so that what is appended at once is read as one batch. */
const partitions = { calls: 1, 'calls.import': 1, outbound: 1, 'outbound.replay': 1 }

const scenes = [
  { name: 'written by the batch itself', beside: [], users: 2 },
  // Nothing comes of it, so nothing of that user is written: all are locked to be looked at.
  { name: 'locked by a batch that leaves others as they are', beside: ['Seen'], users: 3 },
] as const

for (const { name, beside, users } of scenes)
  test(`a user whom somebody else wrote is folded again into what is stored, ${name}`, async () => {
    const rig = await aRig(pool, [audience(1, twice)], partitions)
    const lines: string[] = []
    const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
    running.push(rig.start({ logger }))
    await rig.built()
    const order = (userId: string) => ({ userId, event: 'Order Completed' })
    await rig.send(order('u1'), order('u2'), order('u3'))
    await rig.caughtUp()
    const once = await stored('u1')
    await rig.send(order('u1'))
    await rig.caughtUp()
    expect(await rig.members(1)).toEqual(['u1'])
    // As if somebody else had taken the second order back: remembered are two, stored is one.
    await pool.query('update ustate set st = $2, ver = ver + 1 where user_key = $1', [
      once.key,
      once.st,
    ])
    const { ver } = await stored('u1')
    const calls = [
      order('u1'),
      order('u2'),
      ...beside.map((event) => ({ userId: 'u3', event })),
    ].map((sent) => aMessage(sent, rig.now()))
    lines.splice(0)
    await rig.log.appender().append(
      'calls',
      calls.map((message) => ({ key: logKey(message), value: codec.encode(message) })),
    )
    await rig.caughtUp()
    const told = lines.map((line) => JSON.parse(line))
    expect(told.filter(({ msg }) => msg === 'batch.replayed')).toHaveLength(1)
    const batches = told.filter(({ msg }) => msg === 'batch.projected')
    expect(batches.at(-1)).toMatchObject({ users, written: 2 })
    expect((await stored('u1')).ver).toBe(ver + 1)
    // Remembered of u1 would have been three.
    await rig.send(order('u3'))
    await rig.caughtUp()
    expect(await rig.members(1)).toEqual(['u1', 'u2', 'u3'])
  })

test('users are replaced all together or not at all, and new ones come with them', async () => {
  const plan = await loadPlan(pool)
  const replace = (users: readonly (readonly [key: number, ver: number])[]) =>
    pool.transaction(async (tx) => {
      await prepareSession(tx)
      const states = users.map(([key, ver]) => ({ ...newUser(key, 1), ver, userId: `u${key}` }))
      if (!(await replaceUsers(tx, usersAsPacked(states, plan)))) throw new Error('stale')
    })
  const vers = async () => {
    const { rows } = await pool.query<{ said: string }>(
      `select user_key || ':' || ver as said from ustate order by user_key`,
    )
    return rows.map(({ said }) => said)
  }
  await replace([
    [2, 0],
    [1, 0],
  ])
  await replace([
    [3, 0],
    [2, 1],
  ])
  expect(await vers()).toEqual(['1:1', '2:2', '3:1'])
  await expect(
    replace([
      [1, 1],
      [2, 1],
      [4, 0],
    ]),
  ).rejects.toThrow('stale')
  expect(await vers()).toEqual(['1:1', '2:2', '3:1'])
})
