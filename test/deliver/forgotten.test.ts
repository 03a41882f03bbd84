// Who is suppressed while messages wait in memory: nothing of theirs begins any more.
import { expect, test } from 'vitest'
import type { Suppressions } from '../../src/domain/suppression.ts'
import { aDestination, aLive, aSource, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()

/** Nobody, until they are named. */
const someSuppressed = () => {
  let version = 1n
  const suppressed = new Set<string | null>()
  const suppressions: Suppressions = {
    isSuppressed: ({ userId }) => suppressed.has(userId),
    version: () => version,
  }
  const suppress = (userId: string) => {
    suppressed.add(userId)
    version += 1n
  }
  return { suppressions, suppress }
}

test('what waits for its first try does not go out once its user is suppressed', async () => {
  const hook = await receiver()
  const answering = Promise.withResolvers<void>()
  hook.reply(async ({ body }) => {
    if (String(body).includes('"first"')) await answering.promise
    return 200
  })
  const rig = open(
    aLive({
      sources: [aSource()],
      destinations: [aDestination({ webhooks: to(hook.url) })],
    }),
    { partitions: 1 },
  )
  const { suppressions, suppress } = someSuppressed()
  const life = rig.start({}, 60_000, { suppressions })
  const call = (userId: string, event: string) => rig.aCall({ userId, event }, { userId, event })
  await rig.append([call('ann', 'first'), call('ann', 'second'), call('ben', 'other')])
  await until(() => hook.requests.length === 2, 'the first of each is on its way')
  suppress('ann')
  answering.resolve()
  await drained(rig)
  await life.running.stop()
  expect(hook.requests.map(({ body }) => JSON.parse(String(body)).event).sort()).toEqual([
    'first',
    'other',
  ])
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'cancelled', body: null }])
})

test('of what is parked nothing is kept once its user is suppressed, also where it was dead before', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(
    aLive({ sources: [aSource()], destinations: [aDestination({ webhooks: to(hook.url) })] }),
    { partitions: 1 },
  )
  const { suppressions, suppress } = someSuppressed()
  const life = rig.start({}, 60_000, { suppressions })
  const call = (userId: string) => rig.aCall({ userId }, { userId })
  await rig.append([call('ann'), call('ben'), call('cat')])
  const parked = async () => (await rowsOf('parked')).filter((row) => row.lease_owner === null)
  await until(async () => (await parked()).length === 3, 'all wait for another try')
  // As if it were sent again by a recovery.
  await database.pool.query(
    `insert into dead (topic, partition, log_offset, destination_id, chain, message_id, type, body,
       reason, attempts, dead_at, replayed_at)
     select topic, partition, log_offset, destination_id, chain, message_id, type, 'of before',
       'expired', 9, $1, $1 from parked where log_offset = 1`,
    [new Date(rig.now())],
  )
  suppress('ann')
  suppress('ben')
  hook.reply(() => 400)
  rig.setNow(rig.now() + 3_600_000)
  await until(async () => (await rowsOf('parked')).length === 0, 'all are given up')
  await life.running.stop()
  expect(await rowsOf('dead')).toMatchObject([
    { reason: 'cancelled', body: null },
    { reason: 'cancelled', body: null },
    { reason: 'status_400', body: expect.any(Buffer) },
  ])
})

test('nor is it where its destination is off by then', async () => {
  const hook = await receiver()
  const answering = Promise.withResolvers<void>()
  hook.reply(async () => {
    await answering.promise
    return 200
  })
  const destination = aDestination({ webhooks: to(hook.url) })
  const live = aLive({ sources: [aSource()], destinations: [destination] })
  const rig = open(live, { partitions: 1 })
  const { suppressions, suppress } = someSuppressed()
  const life = rig.start({}, 60_000, { suppressions })
  await rig.append([1, 2].map(() => rig.aCall({ userId: 'ann' }, { userId: 'ann' })))
  await until(() => hook.requests.length === 1, 'the first is on its way')
  suppress('ann')
  live.replace({ sources: [aSource()], destinations: [{ ...destination, enabled: false }] })
  answering.resolve()
  await drained(rig)
  await life.running.stop()
  expect(await rowsOf('dead')).toMatchObject([{ reason: 'cancelled', body: null }])
})
