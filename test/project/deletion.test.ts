import { afterEach, expect, test } from 'vitest'
import { partitionOf } from '../../src/domain/partition.ts'
import type { Running } from '../../src/running.ts'
import { cloneDatabase } from '../support/database.ts'
import { aRig, audience, performed, start } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
  await pool.query('truncate deletion_request cascade')
})

const projecting = async () => {
  const rig = await aRig(pool, [audience(1, performed('eq', 0))])
  running.push(rig.start())
  await rig.built()
  return rig
}

const requests = async () =>
  (
    await pool.query(
      `select workspace_id as workspace, source_id as source, message_id as message, kind,
              (select value from deletion_subject where request_id = deletion_request.id and deletion_subject.kind = 0) as "user",
              (select value from deletion_subject where request_id = deletion_request.id and deletion_subject.kind = 1) as anonymous,
              origin, state, created_at as at
         from deletion_request order by id`,
    )
  ).rows

const aDelete = { type: 'delete', userId: 'u1', anonymousId: 'a1', messageId: 'd1' } as const

test('a delete call becomes one request, received when the call was', async () => {
  const rig = await projecting()
  await rig.send(aDelete)
  await rig.caughtUp()
  expect(await requests()).toEqual([
    {
      workspace: 1,
      source: 1,
      message: 'd1',
      kind: 'delete_only',
      user: 'u1',
      anonymous: 'a1',
      origin: 'call',
      state: 'received',
      at: new Date(start),
    },
  ])
})

test('a delete call makes no profile of whom it names, and leaves the one there is', async () => {
  const rig = await projecting()
  await rig.send({ userId: 'known', type: 'page' }, aDelete, { ...aDelete, userId: 'known' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['known'])
  const { rows } = await pool.query('select value from identity')
  expect(rows).toEqual([{ value: 'known' }])
})

test('the same call sent again is the same request, another user under its id is another', async () => {
  const rig = await projecting()
  await rig.send(aDelete, aDelete, { ...aDelete, userId: null, anonymousId: elsewhere })
  await rig.send({ ...aDelete, messageId: 'd2', topic: 'calls.import', timestamp: 1 })
  await rig.caughtUp()
  const found = (await requests()).map(({ message, user, anonymous }) => [message, user, anonymous])
  expect(found.toSorted()).toEqual([
    ['d1', null, elsewhere],
    ['d1', 'u1', 'a1'],
    ['d2', 'u1', 'a1'],
  ])
})

/** Duplicates are known by partition: a second user is only heard on another one. */
const placeOf = (anonymousId: string) => partitionOf(`1:1:${anonymousId}`, 3)
const elsewhere = ['b', 'c', 'd', 'e', 'f'].find((id) => placeOf(id) !== placeOf('a1')) as string
