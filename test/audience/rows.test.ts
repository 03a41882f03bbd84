// Users come out of Postgres many to a value, and each as it was saved.
import { beforeEach, expect, test } from 'vitest'
import { repack } from '../../src/audience/pack.ts'
import { knownTo, loadPlan } from '../../src/audience/plan.ts'
import { readUsers, usersInValue } from '../../src/audience/rows.ts'
import { newUser, type UserState } from '../../src/audience/state.ts'
import { entombUsers, prepareSession, saveUsers } from '../../src/audience/store.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
const plan = await loadPlan(pool)

beforeEach(async () => {
  await pool.query('truncate ustate')
})

const save = (users: readonly UserState[]) =>
  pool.transaction(async (tx) => {
    await prepareSession(tx)
    await saveUsers(tx, users, plan)
  })

const read = (keys: readonly number[]) => pool.connect((connection) => readUsers(connection, keys))

test('users of more than one value, asked in any order, once each', async () => {
  const keys = Array.from({ length: usersInValue * 2 + 1 }, (_, at) => at * 7 + 1)
  const users = keys.map((key) => ({ ...newUser(key, 1), userId: `user-${key}` }))
  await save(users)
  const found = await read(keys.toReversed())
  expect(found.map(({ userId }) => userId).toSorted()).toEqual(
    users.map(({ userId }) => userId).toSorted(),
  )
})

test('a user as it was saved: ids of any script or none, timers or none, keys beyond 32 bits', async () => {
  const due = 1_750_000_000_123
  const users = [
    { ...newUser(1, 1), userId: 'Šárka 🌊 "\\{},' },
    { ...newUser(2, 2_147_483_647), due },
    { ...newUser(2 ** 40 + 1, 3), userId: '', sources: [3, 9], identities: 2 },
  ]
  await save(users)
  for (const user of users) repack(user, knownTo(plan))
  const found = await read([2 ** 40 + 1, 2, 1])
  expect(found.toSorted((left, right) => left.key - right.key)).toEqual(users)
})

test('who is no more, or never was, is not among them', async () => {
  const [gone, stays] = [newUser(1, 1), newUser(2, 1)]
  await save([gone, stays])
  await pool.transaction((tx) => entombUsers(tx, [{ user: gone, into: 2 }]))
  expect((await read([1, 2, 3])).map(({ key }) => key)).toEqual([2])
  expect(await read([])).toEqual([])
})
