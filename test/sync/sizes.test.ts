import { afterEach, beforeEach, expect, test } from 'vitest'
import { isReplayable } from '../../src/postgres/sql.ts'
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

test('changes do not pile up while no run takes them up, and none of them is lost', async () => {
  await setMembers(pool, [1, 2])
  await goLive(pool)
  world.start({ limits: { membershipChangesMax: 3, standbyMs: 20, pollMs: 5 } })
  await until(async () => expect(await sizes()).toEqual([[2, 0]]))
  for (const key of [3, 4, 5, 6, 7]) await setMembers(pool, [key])
  await setMember(pool, { key: 3, member: false })
  const changed = async () => (await pool.query('select from membership_change')).rowCount
  await until(async () => expect(await changed()).toBeLessThanOrEqual(3))
  await syncNow()
  await until(async () =>
    expect(await sizes()).toEqual([
      [2, 0],
      [6, 0],
    ]),
  )
})

/** Each a statement of its own, as the stages, the builds and deletion requests have them. */
const changes: readonly string[] = [
  `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
   select 1 + k % 2, 0, k, case when k % 3 = 0 then null else 'u' || k end, k % 5 > 0, true
     from generate_series($1::int, $1 + 20) k
   on conflict (audience_id, user_key) do update set cur = true, user_id = excluded.user_id`,
  'update membership set cur = not cur where user_key % 7 = $1 % 7',
  `update membership set user_id = 'u' || user_key where user_key % 4 = $1 % 4`,
  'update membership set synced = cur where user_key > $1',
  'delete from membership where user_key % 11 = $1 % 11',
]

test.each([1, 2, 3])('sizes follow every change of memberships, seed %i', async (seed) => {
  await goLive(pool)
  await goLive(pool, 2)
  world.start({ limits: { standbyMs: 20 } })
  let state = seed * 7_919
  const random = (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
  for (let round = 0; round < 4; round++) {
    const writer = async () => {
      for (let left = 6; left > 0; left--) {
        const isKept = random(4) > 0
        const [text, key] = [changes[random(changes.length)] as string, random(60)]
        const work = pool.transaction(async (tx) => {
          // One at a time: those that write the same rows would wait for each other in circles.
          await tx.query('select pg_advisory_xact_lock(7)')
          await tx.query(text, [key])
          if (!isKept) throw new Error('rolled back')
        })
        // The chunk of a run may have locked the same rows in another order.
        await work.catch((error: unknown) => {
          if (!isReplayable(error)) expect(error).toMatchObject({ message: 'rolled back' })
        })
      }
    }
    // Runs end, and count, in the middle of it.
    await Promise.all([writer(), writer(), syncNow()])
    await syncNow()
    const { rows } = await pool.query<{ counted: number[]; members: number[] }>(
      `select array(select coalesce(sum(members), 0) from (
                select audience_id, members from membership_count
                union all select audience_id, members from membership_change) c
                where audience_id = a.id)::int[]
           || array(select coalesce(sum(anonymous), 0) from (
                select audience_id, anonymous from membership_count
                union all select audience_id, anonymous from membership_change) c
                where audience_id = a.id)::int[] as counted,
              array(select count(*) from membership m where m.audience_id = a.id and cur)::int[]
           || array(select count(*) from membership m
                     where m.audience_id = a.id and cur and user_id is null)::int[] as members
         from (values (1), (2)) a(id)`,
    )
    for (const { counted, members } of rows) expect(counted).toEqual(members)
    await until(async () => expect((await sizes()).at(-1)).toEqual(rows[0]?.members))
  }
})

test('nothing is left of who is forgotten all at once', async () => {
  await goLive(pool)
  await setMembers(pool, [1, 2])
  await pool.query('truncate membership')
  const { rows } = await pool.query('select * from membership_change')
  expect(rows).toEqual([])
})
