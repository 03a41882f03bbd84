import { afterEach, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aRig, audience, performed } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

test('a batch ties more users than one statement takes, each to all of their accounts', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 1))])
  const users = 2_300
  await rig.send(
    ...Array.from({ length: users }, (_, at) => at).flatMap((at) => [
      { type: 'group', userId: `u${at}`, groupId: `g${at % 7}` } as const,
      { type: 'group', userId: `u${at}`, groupId: 'all' } as const,
    ]),
  )
  running.push(rig.start({ limits: { batchCallsMax: 2 * users } }))
  await rig.caughtUp()
  const { rows } = await pool.query(
    `select count(*)::int as ties, count(distinct user_key)::int as users,
            count(*) filter (where group_id = 'all')::int as all from account_user`,
  )
  expect(rows).toEqual([{ ties: 2 * users, users, all: users }])
  // Nothing has added the deltas up: they say who is tied, and that each has a user id.
  const { rows: marks } = await pool.query(
    `select mark, sum(change)::int as n from account_delta
      where group_id = 'all' and mark in (0, -1) group by mark order by mark`,
  )
  expect(marks).toEqual([
    { mark: -1, n: users },
    { mark: 0, n: users },
  ])
})
