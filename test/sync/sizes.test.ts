import { afterEach, beforeEach, expect, test } from 'vitest'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { cloneDatabase } from '../support/database.ts'
import { goLive, openWorld, setMember, setMembers, until, type World } from './stage.ts'

const { pool } = await cloneDatabase()
let world: World

beforeEach(async () => {
  world = await openWorld(pool)
})

afterEach(() => world.stopAll())

const syncNow = async () => {
  const id = await requestSync(pool, { audienceIds: [1], at: world.clock() })
  await until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))
}

const sizes = async () => {
  const { rows } = await pool.query<{ members: number; anonymous: number }>(
    'select members, anonymous from audience_size where audience_id = 1 order by run_id',
  )
  return rows.map(({ members, anonymous }) => [members, anonymous])
}

test('every run counts its audiences, members without a user id apart, and keeps so many counts', async () => {
  await setMembers(pool, [1, 2])
  await setMember(pool, { key: 3, userId: null })
  await goLive(pool)
  world.start({ limits: { sizesKept: 2, standbyMs: 20 } })
  await until(async () => expect(await sizes()).toEqual([[3, 1]]))
  await setMember(pool, { key: 2, member: false })
  await syncNow()
  await until(async () =>
    expect(await sizes()).toEqual([
      [3, 1],
      [2, 1],
    ]),
  )
  await setMembers(pool, [4, 5])
  await syncNow()
  await until(async () =>
    expect(await sizes()).toEqual([
      [2, 1],
      [4, 1],
    ]),
  )
})
