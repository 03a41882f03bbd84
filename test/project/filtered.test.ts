// Records of calls that were filtered at their source: nothing is folded from them, live or from history.
import { afterEach, expect, test } from 'vitest'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aRig, audience, performed } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

test('a filtered record makes no user and feeds no audience, neither live nor in a back-fill', async () => {
  const live = audience(1, performed('gte', 1))
  const rig = await aRig(pool, [live])
  running.push(rig.start())
  await rig.built()
  const filtered = 'event_not_planned'
  await rig.send(
    { userId: 'u1', filtered },
    { type: 'identify', userId: 'u2', traits: { plan: 'pro' }, filtered },
    { type: 'alias', userId: 'u3', previousId: 'u4', filtered },
    { userId: 'u5' },
    { userId: 'u5', filtered },
  )
  await rig.caughtUp()
  const later = audience(2, performed('gte', 1, '30d'))
  const twice = audience(3, performed('gte', 2))
  rig.live.replace({ audiences: [live, later, twice] })
  await rig.built()
  expect(await rig.members(1)).toEqual(['u5'])
  expect(await rig.members(2)).toEqual(['u5'])
  expect(await rig.members(3)).toEqual([])
  const { rows } = await pool.query('select value from identity order by value')
  expect(rows).toEqual([{ value: 'u5' }])
})
