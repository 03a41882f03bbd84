import { afterEach, beforeEach, expect, test } from 'vitest'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { aDestination, anAudience } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import {
  bodyOf,
  goLive,
  openWorld,
  setDue,
  setMember,
  setMembers,
  setPosition,
  start,
  told,
  until,
  type World,
} from './stage.ts'

const { pool } = await cloneDatabase()
let world: World

beforeEach(async () => {
  world = await openWorld(pool)
})

afterEach(() => world.stopAll())

const finished = async (id: number) => {
  await until(async () => expect((await findSyncRun(pool, id))?.state).toBe('finished'))
  return findSyncRun(pool, id)
}

/** A forced sync of the given audiences, to its end. */
const syncNow = async (audienceIds: readonly number[] = [1]) =>
  finished(await requestSync(pool, { audienceIds, at: world.clock() }))

test('the first sync sends every member, without waiting for a slot', async () => {
  await setMembers(pool, [1, 2, 65, 700])
  world.start()
  await goLive(pool)
  await until(async () =>
    expect(told(await world.outbound())).toEqual(['u1:true', 'u2:true', 'u65:true', 'u700:true']),
  )
})

test('a message has the agreed keys in the agreed order, and the instant of its chunk', async () => {
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(1))
  const message = (await world.outbound())[0]
  expect(Buffer.from(message?.body ?? '').toString()).toBe(
    '{"version":1,"type":"identify","userId":"u1","traits":{"big_spenders":true},"timestamp":"2024-03-01T00:00:00.000Z"}',
  )
  expect(message).toMatchObject({
    origin: 'audience',
    type: 'identify',
    workspaceId: 1,
    destinationId: 1,
    userId: 'u1',
    timestamp: start.getTime(),
    shard: 1,
    seq: 1,
  })
  expect(message?.messageId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-/)
})

test('a later sync sends changed users only', async () => {
  await setMembers(pool, [1, 2, 3])
  await goLive(pool)
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(3))
  await setMember(pool, { key: 2, member: false })
  await setMember(pool, { key: 4 })
  const run = await syncNow()
  expect(run?.emitted).toBe(2)
  expect(told((await world.outbound()).slice())).toEqual([
    'u1:true',
    'u2:false',
    'u2:true',
    'u3:true',
    'u4:true',
  ])
  const rows = await pool.query('select user_key, cur, synced from membership order by 1')
  expect(rows.rows).toEqual([1n, 3n, 4n].map((user_key) => ({ user_key, cur: true, synced: true })))
})

test('a user who leaves and comes back between two syncs is not sent', async () => {
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(1))
  await setMember(pool, { key: 1, member: false })
  await setMember(pool, { key: 1, member: true })
  await setMember(pool, { key: 2, member: true })
  await setMember(pool, { key: 2, member: false })
  const run = await syncNow()
  expect(run?.emitted).toBe(0)
  expect(await world.outbound()).toHaveLength(1)
})

test('every destination of the audience gets its own message', async () => {
  world.live.replace({
    destinations: [aDestination(), aDestination({ id: 2, name: 'Other' })],
    audiences: [anAudience({ destinationIds: [1, 2, 9] })],
  })
  await setMembers(pool, [1, 65])
  await goLive(pool)
  world.start()
  await until(async () => expect(await world.outbound()).toHaveLength(4))
  const all = (await world.outbound()).map(
    (it) => `${it.userId} ${it.destinationId} ${it.shard} ${it.seq}`,
  )
  expect(all.sort()).toEqual(['u1 1 1 1', 'u1 2 1 2', 'u65 1 1 3', 'u65 2 1 4'])
  expect(new Set((await world.outbound()).map(({ messageId }) => messageId)).size).toBe(4)
})

test('an anonymous member is sent once it has a user id', async () => {
  await setMember(pool, { key: 1, userId: null })
  await goLive(pool)
  world.start()
  expect((await syncNow())?.emitted).toBe(0)
  await setMember(pool, { key: 1, userId: 'known' })
  expect((await syncNow())?.emitted).toBe(1)
  expect(told(await world.outbound())).toEqual(['known:true'])
})

test('an audience without a destination keeps its changes until it has one', async () => {
  world.live.replace({ audiences: [anAudience({ destinationIds: [] })] })
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  expect((await syncNow())?.emitted).toBe(0)
  world.live.replace({ destinations: [aDestination()], audiences: [anAudience()] })
  expect((await syncNow())?.emitted).toBe(1)
})

test('an audience whose only destination is switched off keeps its changes until it is on again', async () => {
  world.live.replace({
    destinations: [aDestination({ enabled: false })],
    audiences: [anAudience()],
  })
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  expect((await syncNow())?.emitted).toBe(0)
  world.live.replace({ destinations: [aDestination()], audiences: [anAudience()] })
  expect((await syncNow())?.emitted).toBe(1)
})

test('more users than one chunk holds are synced in several, each recorded', async () => {
  const keys = Array.from({ length: 25 }, (_, index) => 64 * index + 3)
  await setMembers(pool, keys)
  await goLive(pool)
  world.start({ limits: { chunkUsersMax: 10, appendRowsMax: 7, standbyMs: 20 } })
  await until(async () => expect(await world.outbound()).toHaveLength(25))
  await until(async () => expect((await findSyncRun(pool, 1))?.state).toBe('finished'))
  const chunks = await pool.query(
    'select shard, chunk, users, emitted from sync_chunk order by shard, chunk',
  )
  expect(chunks.rows).toEqual([
    { shard: -1, chunk: 0, users: 0, emitted: 0 },
    { shard: 3, chunk: 0, users: 10, emitted: 10 },
    { shard: 3, chunk: 1, users: 10, emitted: 10 },
    { shard: 3, chunk: 2, users: 5, emitted: 5 },
  ])
  const seqs = (await world.outbound()).map(({ seq }) => seq)
  expect(seqs.sort((a, b) => a - b)).toEqual(keys.map((_, index) => index + 1))
  expect((await pool.query('select 1 from outbox')).rows).toEqual([])
})

test('a chunk compares at the highest receivedAt folded when the clock is behind it', async () => {
  const ahead = start.getTime() + 5_000
  await setPosition(pool, { partition: 0, next: 7, folded: ahead })
  await setMembers(pool, [1])
  await setDue(pool, 1, new Date(ahead))
  await goLive(pool)
  const swept: { shard: number; at: Date; limit: number }[] = []
  world.start({
    sweepDue: async (_, { shard, at, limit }) => {
      swept.push({ shard, at, limit })
      return 0
    },
  })
  await until(async () => expect(await world.outbound()).toHaveLength(1))
  expect(bodyOf((await world.outbound())[0] as never).timestamp).toBe('2024-03-01T00:00:05.000Z')
  expect(swept).toEqual([{ shard: 1, at: new Date(ahead), limit: 1_000 }])
  const records = await pool.query('select shard, at, positions from sync_chunk order by shard')
  const place = { at: new Date(ahead), positions: { 'calls/0': 7 } }
  expect(records.rows).toEqual([
    { shard: -1, ...place },
    { shard: 1, ...place },
  ])
})

test('users who are due are swept in their chunk, before the changes are read', async () => {
  await goLive(pool)
  await setDue(pool, 5, start)
  await setDue(pool, 6, new Date(start.getTime() + 1))
  const shards: number[] = []
  world.start({
    sweepDue: async (tx, { shard, at }) => {
      shards.push(shard)
      const { rows } = await tx.query<{ user_key: bigint }>(
        'update ustate set due = null where shard = $1 and due <= $2 returning user_key',
        [shard, at],
      )
      for (const { user_key } of rows)
        await tx.query(
          `insert into membership values (1, $1, $2, 'u' || $2::bigint, true, false)`,
          [shard, user_key],
        )
      return rows.length
    },
  })
  await until(async () => expect(told(await world.outbound())).toEqual(['u5:true']))
  expect(shards).toEqual([5])
})

test('a run waits for the partition that lags, and says so after ten minutes', async () => {
  await world.append('calls', ['a', 'b', 'c'])
  const ends = (await world.log.source().bounds('calls')).map(({ end }) => Number(end))
  const behind = ends.findIndex((end) => end > 0)
  await setMembers(pool, [1])
  await goLive(pool)
  const lines: unknown[] = []
  const { default: pino } = await import('pino')
  const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  world.start({ logger })
  await until(async () => expect((await findSyncRun(pool, 1))?.state).toBe('running'))
  for (const [partition, next] of ends.entries())
    if (partition !== behind && next > 0) await setPosition(pool, { partition, next })
  world.advance(600_001)
  await until(() => expect(lines).not.toEqual([]))
  const lag = ends[behind] as number
  expect(lines[0]).toMatchObject({
    msg: 'sync.delayed',
    runId: 1,
    lags: [{ partition: behind, lag }],
  })
  expect(await world.outbound()).toEqual([])
  await setPosition(pool, { partition: behind, next: lag })
  await finished(1)
  expect(told(await world.outbound())).toEqual(['u1:true'])
})

test('a chunk that cannot be serialized is replayed', async () => {
  await setMembers(pool, [1, 65, 129])
  await setDue(pool, 1, start)
  await goLive(pool)
  let sweeps = 0
  world.start({
    sweepDue: async () => {
      sweeps += 1
      // The projector commits a flip of the same row after this chunk took its snapshot.
      if (sweeps === 1) await pool.query('update membership set cur = false where user_key = 65')
      return 0
    },
  })
  await until(async () =>
    expect(told(await world.outbound())).toEqual(['u129:true', 'u1:true'].sort()),
  )
  await finished(1)
  expect(sweeps).toBe(2)
})

test('a request waits for back-fill, and fails for an audience nobody knows', async () => {
  await setMembers(pool, [1])
  world.start({ limits: { unknownAudienceMs: 100, standbyMs: 20 } })
  const early = await requestSync(pool, { audienceIds: [1], at: start })
  const unknown = await requestSync(pool, { audienceIds: [77], at: start })
  await until(async () =>
    expect(await findSyncRun(pool, unknown)).toMatchObject({
      state: 'failed',
      reason: 'audience_unknown',
    }),
  )
  expect((await findSyncRun(pool, early))?.state).toBe('requested')
  await goLive(pool)
  expect(await finished(early)).toMatchObject({ audienceIds: [1] })
  // By it or by a run of the schedule's own, which may see first that the audience is live.
  expect(told(await world.outbound())).toEqual(['u1:true'])
  expect(await findSyncRun(pool, 9_999)).toBeNull()
})

test('an audience that is edited during its run is left alone until it is live again', async () => {
  await world.append('calls', ['a'])
  await setMembers(pool, [1])
  await goLive(pool)
  world.start()
  await until(async () => expect((await findSyncRun(pool, 1))?.state).toBe('running'))
  await pool.query(`update audience_state set state = 'backfilling'`)
  for (let partition = 0; partition < 4; partition++)
    await setPosition(pool, { partition, next: 1 })
  expect(await finished(1)).toMatchObject({ emitted: 0 })
  await goLive(pool, 1, 2)
  await until(async () => expect(told(await world.outbound())).toEqual(['u1:true']))
})
