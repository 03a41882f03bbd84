// Audiences of accounts through projector and sync.
import { expect, test } from 'vitest'
import { openCodecs } from '../../src/log/avro.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { startSync } from '../../src/sync/sync.ts'
import { aRig, audience, performed, until } from '../project/rig.ts'
import { aDestination } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { liveThrough } from './account-line.ts'

const { pool } = await cloneDatabase()
const codecs = await openCodecs({})

test.each([1, 2])('users of accounts are told what the naive count says, seed %i', async (seed) => {
  await expect(liveThrough({ pool, seed, steps: 10, partitions: 1 })).resolves.toBeUndefined()
})

test('ties of calls that were read before there were ties come with the first audience', async () => {
  const rig = await aRig(pool)
  const projector = rig.start()
  const group = (userId: string, groupId: string) => ({ type: 'group', userId, groupId }) as const
  await rig.send(group('u1', 'g1'), group('u2', 'g1'), group('u3', 'g2'), { userId: 'u1' })
  await rig.caughtUp()
  await pool.query('truncate account_user, account_delta, account_visit')
  const any = audience(1, { users: { quantifier: 'any', where: performed('gte', 1) } })
  const none = audience(2, { users: { quantifier: 'none', where: performed('gte', 1) } })
  rig.live.replace({ audiences: [any, none], destinations: [aDestination()] })
  await rig.built()
  const [source, appender] = [rig.log.source(), rig.log.appender()]
  const sync = startSync({ ...rig.deps, source, appender, codecs })
  const run = await requestSync(pool, { audienceIds: [1, 2], at: rig.clock() })
  await until('it is synced', async () => (await findSyncRun(pool, run))?.state === 'finished')
  await Promise.all([projector.stop(), sync.stop()])
  expect(await rig.members(1)).toEqual(['u1', 'u2'])
  expect(await rig.members(2)).toEqual(['u3'])
})

test('what nobody asks for is added up all the same, before there is too much of it', async () => {
  const rig = await aRig(pool)
  const projector = rig.start()
  const [source, appender] = [rig.log.source(), rig.log.appender()]
  const limits = { accountBacklogMax: 4 }
  const sync = startSync({ ...rig.deps, source, appender, codecs, limits })
  for (const number of [1, 2, 3, 4, 5])
    await rig.send({ type: 'group', userId: `u${number}`, groupId: `g${number % 2}` })
  await rig.caughtUp()
  const counts = async () =>
    (await pool.query('select group_id, mark, users from account_count order by 1, 2')).rows
  await until('most of it is added up', async () => {
    const { rows } = await pool.query<{ left: number }>(
      'select count(*)::int as left from account_delta',
    )
    return (rows[0]?.left ?? 0) <= 4 && (await counts()).length > 0
  })
  await Promise.all([projector.stop(), sync.stop()])
  expect((await counts()).length).toBeGreaterThan(0)
})
