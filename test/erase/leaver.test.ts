// Whoever is erased is not told of any more, not even that they left an audience while a destination was off.
import { afterEach, expect, test } from 'vitest'
import { findTraces } from '../../src/erase/traces.ts'
import { audience, performed } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { type Erasing, openErasing } from './rig.ts'

const { pool } = await cloneDatabase()
const open: Erasing[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.stop()
})

test('of a user who is erased nobody is told later that they left', async () => {
  const rig = await openErasing(pool, [audience(1, performed('gte', 1))])
  open.push(rig)
  rig.project()
  await rig.built()
  await rig.send({ userId: 'secret-u1' }, { userId: 'u2' })
  await rig.caughtUp()
  await pool.query(
    `insert into sync_leaver (audience_id, destination_id, user_id, shard)
     values (1, 2, 'secret-u1', 3), (1, 3, 'secret-u1', 3), (1, 2, 'u2', 4)`,
  )
  const id = await rig.ask({ ids: [{ kind: 'user', value: 'secret-u1' }] })
  rig.advance(1_000)
  rig.erase()
  await rig.reaches(id, 'waiting')
  const { rows } = await pool.query('select user_id as id from sync_leaver')
  expect(rows).toEqual([{ id: 'u2' }])
  expect((await findTraces(pool, 'secret-u1')).map(({ table }) => table)).not.toContain(
    'sync_leaver',
  )
})
