import pino from 'pino'
import { afterEach, expect, test } from 'vitest'
import { orderOf } from '../../src/domain/erasure.ts'
import { logKey } from '../../src/domain/message.ts'
import type { Suppressions } from '../../src/domain/suppression.ts'
import type { Running } from '../../src/running.ts'
import { aRig, audience, codec, performed, type Rig } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { rebuilt } from './rig.ts'

const { pool, url } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

const minute = 60_000

/** As the erasure leaves it in the end: the order in the log, and no more of the request than it keeps. */
const erase = async (rig: Rig, value: string): Promise<void> => {
  const { rows } = await pool.query<{ id: number }>(
    `insert into deletion_request (workspace_id, origin, created_at, state)
     values (1, 'api', $1, 'running') returning id`,
    [rig.clock()],
  )
  const requestId = rows[0]?.id as number
  await pool.query(
    `insert into deletion_subject (request_id, n, kind, value) values ($1, 0, 0, $2)`,
    [requestId, value],
  )
  const asked = { requestId, n: 0, workspaceId: 1, kind: 'user', value } as const
  const order = orderOf({ ...asked, createdAt: rig.clock() })
  const entry = { key: logKey(order), value: codec.encode(order) }
  await rig.log.appender().append('calls', [entry])
  await rig.caughtUp()
  await pool.query('delete from deletion_profile')
  await pool.query('delete from deletion_identity')
  await pool.query('update deletion_subject set value = null')
  await pool.query(`update deletion_request set state = 'finished'`)
}

test('who was erased does not come back, and who returned since has what they did since', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 1))])
  let deletedAt = 0
  const suppressions: Suppressions = {
    isSuppressed: ({ userId, anonymousId, sentAt }) =>
      (userId === 'u1' || anonymousId === 'a1') && sentAt.getTime() < deletedAt,
  }
  running.push(rig.start({ suppressions }))
  await rig.built()
  await rig.send(
    { userId: 'u1', sourceId: 2 },
    { anonymousId: 'a1', sourceId: 3 },
    { type: 'identify', userId: 'u1', anonymousId: 'a1', traits: { plan: 'gold' } },
    { type: 'group', userId: 'u1', groupId: 'g' },
    { userId: 'u2' },
  )
  await rig.caughtUp()
  rig.advance(minute)
  deletedAt = rig.now()
  await erase(rig, 'u1')
  expect(await rig.members(1)).toEqual(['u2'])
  rig.advance(minute)
  await rig.send({ userId: 'u1', event: 'Seen' }, { userId: 'u2' })
  await rig.caughtUp()
  const over = { suppressions }
  expect(await rebuilt(rig, url, { over })).toMatchObject({ state: 'swapped', differences: [] })
  expect(await rig.members(1)).toEqual(['u2'])
  const { rows } = await pool.query('select value from identity order by 1')
  expect(rows).toEqual([{ value: 'u1' }, { value: 'u2' }])
  for (const table of ['account_user', 'deletion_profile', 'deletion_identity'])
    expect([table, (await pool.query(`select * from ${table}`)).rows]).toEqual([table, []])
  expect((await pool.query('select count(*)::int as n from deletion_request')).rows[0]).toEqual({
    n: 1,
  })
})

test('whom an order erases while the past is folded is met again without folding anything twice', async () => {
  const rig = await aRig(pool, [audience(1, performed('gte', 2))])
  running.push(rig.start())
  await rig.built()
  await rig.send({ userId: 'u3', event: 'Ordered' })
  await rig.caughtUp()
  rig.advance(minute)
  await erase(rig, 'u3')
  rig.advance(minute)
  await rig.send({ userId: 'u3', event: 'Ordered' })
  await rig.caughtUp()
  const warnings: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => warnings.push(line) })
  const found = await rebuilt(rig, url, { verifyOnly: true, over: { logger } })
  expect(found).toMatchObject({ state: 'verified', differences: [] })
  expect(warnings).toEqual([])
  expect(await rig.members(1)).toEqual([])
})
