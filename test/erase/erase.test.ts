import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { logKey } from '../../src/domain/message.ts'
import { findTraces } from '../../src/erase/traces.ts'
import { audience, performed } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { dumpedTraces } from '../support/dump.ts'
import { type Erasing, openErasing, until } from './rig.ts'

const { pool } = await cloneDatabase()
const open: Erasing[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.stop()
})

const erasing = async () => {
  const rig = await openErasing(pool, [audience(1, performed('gte', 1))])
  open.push(rig)
  rig.project()
  await rig.built()
  return rig
}

const user = (value: string) => ({ kind: 'user', value }) as const

const finish = async (rig: Erasing, id: number) => {
  await rig.reaches(id, 'waiting')
  rig.advance(10_000)
  await rig.reaches(id, 'done')
}

const told = async (rig: Erasing) =>
  (await rig.outbound())
    .filter(({ origin }) => origin === 'notice')
    .map(({ destinationId, type, body }) => [
      destinationId,
      type,
      JSON.parse(Buffer.from(body).toString()),
    ])

test('an order in one batch with a call of the same user erases that call too', async () => {
  const partitions = { calls: 1, 'calls.import': 1, outbound: 1, 'outbound.replay': 1 }
  const rig = await openErasing(pool, [audience(1, performed('gte', 1))], partitions)
  open.push(rig)
  const id = await rig.ask({ ids: [user('u1')] })
  rig.advance(1_000)
  // While the first two are written the others come in; after the request, and so not suppressed.
  await rig.send({ userId: 'u2' }, { userId: 'u3' }, { userId: 'u1' })
  rig.erase()
  await rig.reaches(id, 'ordered')
  rig.project({ batchCallsMax: 2 })
  rig.relay()
  await rig.caughtUp()
  await finish(rig, id)
  await rig.built()
  expect(await rig.members(1)).toEqual(['u2', 'u3'])
  expect(await findTraces(pool, 'u1')).toEqual([])
})

test('a user is erased, each affected source’s destinations are told once, and only hashes stay', async () => {
  const rig = await erasing()
  await rig.send(
    { type: 'identify', userId: 'secret-u1', anonymousId: 'secret-a1', traits: { plan: 'gold' } },
    { userId: 'secret-u1' },
    { anonymousId: 'secret-a1', sourceId: 2 },
    { userId: 'u2', sourceId: 3 },
    { type: 'group', userId: 'secret-u1', groupId: 'g1' },
  )
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['secret-u1', 'u2'])
  expect((await findTraces(pool, 'secret-u1')).map(({ table }) => table)).toEqual(
    expect.arrayContaining(['identity', 'membership', 'ustate']),
  )
  const dumped = () => dumpedTraces(pool, ['secret-u1', 'secret-a1'])
  // Rows as text, and what is packed within them.
  expect(await dumped()).toEqual(expect.arrayContaining(['public.identity', 'public.ustate']))
  const asked = rig.clock().toISOString()
  const id = await rig.ask({ ids: [user('secret-u1')] })
  rig.advance(1_000)
  rig.relay()
  rig.erase()
  await finish(rig, id)
  await until('notices are in the log', async () => (await told(rig)).length >= 3)
  expect(await rig.members(1)).toEqual(['u2'])
  await until('the outbox is empty', async () => (await left('outbox')) === 0)
  for (const trace of ['secret-u1', 'secret-a1']) expect(await findTraces(pool, trace)).toEqual([])
  expect(await dumped()).toEqual([])
  const notice = { type: 'delete', userId: 'secret-u1', timestamp: asked }
  // Source 1 has two that are on and have a URL, source 2 one of them; source 3 never saw the user.
  expect((await told(rig)).toSorted()).toEqual([
    [1, 'delete', notice],
    [2, 'delete', notice],
    [2, 'delete', notice],
  ])
  const { rows } = await pool.query('select value, hash is null as bare from deletion_subject')
  expect(rows).toEqual([
    { value: null, bare: false },
    { value: null, bare: false },
  ])
  const { rows: accounts } = await pool.query(
    'select mark, sum(change)::int as users from account_delta group by 1 having sum(change) <> 0',
  )
  expect(accounts).toEqual([])
})

test('late calls do not bring a deleted user back; a real return starts from nothing', async () => {
  const rig = await erasing()
  await rig.send({ type: 'identify', userId: 'u1', anonymousId: 'a1', traits: { old: 1 } })
  await rig.caughtUp()
  const before = rig.now() - 5_000
  const id = await rig.ask({ ids: [user('u1')] })
  rig.erase()
  await finish(rig, id)
  await rig.send(
    { userId: 'u1', sentAt: before },
    { anonymousId: 'a1', sentAt: before },
    { type: 'alias', userId: 'u9', previousId: 'u1', sentAt: before },
    { userId: 'u1', timestamp: before - 100_000_000, topic: 'calls.import' },
  )
  await rig.caughtUp()
  expect((await pool.query('select from identity')).rowCount).toBe(0)
  await rig.send({ type: 'identify', userId: 'u1', traits: { young: 1 } })
  await rig.caughtUp()
  const { rows } = await pool.query<{ st: Buffer }>(
    'select st from ustate where merged_into is null',
  )
  expect(rows.map(({ st }) => [/old/.test(st.toString()), /young/.test(st.toString())])).toEqual([
    [false, true],
  ])
})

test('whoever is suppressed is not heard until they are heard again, and keeps their profile', async () => {
  const rig = await erasing()
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  const id = await rig.ask({ kind: 'suppress_only', ids: [user('u1'), user('u2')] })
  rig.erase()
  await rig.reaches(id, 'waiting')
  await rig.send({ userId: 'u2' }, { userId: 'u3' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', 'u3'])
  const version = rig.suppressions.version()
  await rig.ask({ kind: 'unsuppress', ids: [user('u2')] })
  await until('it is out of force', async () => rig.suppressions.version() > version)
  await rig.send({ userId: 'u2' })
  await rig.caughtUp()
  expect(await rig.members(1)).toEqual(['u1', 'u2', 'u3'])
})

test('nothing is erased before every process that lives goes by the request', async () => {
  const rig = await erasing()
  await rig.send({ userId: 'u1' })
  await rig.caughtUp()
  const beat = (at: number, version: bigint) =>
    pool.query(
      `insert into process (id, host, pid, version, roles, configuration_version, started_at,
         beat_at, suppression_version) values (gen_random_uuid(), 'h', 1, '1', '{collect}', 1, $1, $1, $2)`,
      [new Date(at), version],
    )
  await beat(rig.now(), 0n)
  const id = await rig.ask({ ids: [user('u1')] })
  const other = await rig.ask({ kind: 'unsuppress', ids: [user('u7')] })
  rig.erase()
  await until('the eraser has looked', async () => (await rig.step(other)) === 'recorded')
  expect([await rig.step(id), await rig.members(1)]).toEqual(['recorded', ['u1']])
  await pool.query(
    `update process set suppression_version = r.suppression_version
       from deletion_request r where r.id = $1`,
    [id],
  )
  await rig.reaches(id, 'waiting')
  expect(await rig.step(other)).toBe('recorded')
  // Who died is waited for until its row would have expired.
  rig.advance(61_000)
  await rig.reaches(other, 'done')
})

const left = async (table: string) => (await pool.query(`select from ${table}`)).rowCount

test('what is parked, dead or told of the user goes, and of others stays', async () => {
  const rig = await erasing()
  await rig.send({ userId: 'secret-u1', messageId: 'm-first' }, { userId: 'u2' })
  await rig.caughtUp()
  const at = rig.clock()
  await pool.query(`create table if not exists parked_body_test partition of parked_body default`)
  await pool.query(`create table if not exists attempt_test partition of attempt default`)
  const body = (userId: string) => Buffer.from(JSON.stringify({ type: 'track', userId }))
  for (const [at_, userId] of [
    [1, 'secret-u1'],
    [2, 'u2'],
  ] as const) {
    await pool.query('insert into parked_body (body_id, created_at, bytes) values ($1, $2, $3)', [
      ...[at_, at, body(userId)],
    ])
    await pool.query(
      `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason,
         body_id, body_at, body_bytes, parked_at) values ('calls', 0, $1, 1, $1, 'm', 'track', 'temporary', $1, $2, 9, $2)`,
      [at_, at],
    )
    await pool.query(
      `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason, attempts,
         body, dead_at) values ('calls', 0, $1, 1, 'm', 'track', 'rejected', 1, $2, $3)`,
      [at_, body(userId), at],
    )
    await pool.query(
      `insert into attempt (started_at, topic, partition, log_offset, destination_id, message_id, attempt,
         url, duration_ms, outcome, response_head) values ($1, 'calls', 0, $2, 1, 'm', 1, 'u', 1, 'final', $3)`,
      [at, at_, `no user ${userId}`],
    )
  }
  const dumped = () => dumpedTraces(pool, ['secret-u1'])
  expect(await dumped()).toEqual(
    expect.arrayContaining(
      ['attempt_test', 'dead', 'parked_body_test'].map((name) => `public.${name}`),
    ),
  )
  const id = await rig.ask({ ids: [user('secret-u1')] })
  rig.relay()
  rig.erase()
  await finish(rig, id)
  await until('notices are in the log', async () => (await told(rig)).length === 2)
  await until('the outbox is empty', async () => (await left('outbox')) === 0)
  expect(await findTraces(pool, 'secret-u1')).toEqual([])
  expect(await dumped()).toEqual([])
  expect(await Promise.all(['parked', 'parked_body', 'dead'].map(left))).toEqual([1, 1, 1])
  const { rows: answers } = await pool.query(
    'select response_head as answer from attempt order by log_offset',
  )
  expect(answers.map(({ answer }) => answer)).toEqual([null, 'no user u2'])
  const { rows } = await pool.query('select stores from deletion_request')
  expect(rows).toMatchObject([{ stores: { parked: 1, bodies: 1, deadLetters: 1, attempts: 1 } }])
})

test('what a round in flight parks after the first sweep goes with the second', async () => {
  const rig = await erasing()
  await rig.send({ userId: 'secret-u1' })
  await rig.caughtUp()
  await pool.query(`create table if not exists parked_body_test partition of parked_body default`)
  const id = await rig.ask({ ids: [user('secret-u1')] })
  rig.advance(1_000)
  rig.relay()
  rig.erase()
  await rig.reaches(id, 'waiting')
  const at = rig.clock()
  const body = Buffer.from('{"type":"track","userId":"secret-u1"}')
  await pool.query('insert into parked_body (body_id, created_at, bytes) values (21, $1, $2)', [
    ...[at, body],
  ])
  await pool.query(
    `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason,
       body_id, body_at, body_bytes, parked_at)
     values ('calls', 0, 21, 1, 21, 'm', 'track', 'temporary', 21, $1, 9, $1)`,
    [at],
  )
  rig.advance(10_000)
  await rig.reaches(id, 'done')
  await until('the outbox is empty', async () => (await left('outbox')) === 0)
  expect(await findTraces(pool, 'secret-u1')).toEqual([])
})

test('what is parked of a suppressed visitor is given up, though its body names nobody', async () => {
  const rig = await erasing()
  await pool.query(`create table if not exists parked_body_test partition of parked_body default`)
  const at = rig.clock()
  const chainOf = (anonymousId: string) => {
    const key = logKey({ workspaceId: 1, sourceId: 1, userId: null, anonymousId })
    return createHash('sha1').update(key).digest().readBigInt64BE(0)
  }
  const parkOne = async (n: number, anonymousId: string) => {
    await pool.query('insert into parked_body (body_id, created_at, bytes) values ($1, $2, $3)', [
      ...[n, at, Buffer.from('{"type":"track"}')],
    ])
    await pool.query(
      `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason,
         body_id, body_at, body_bytes, parked_at)
       values ('calls', 0, $1, 1, $3, $4, 'track', 'temporary', $1, $2, 9, $2)`,
      [n, at, chainOf(anonymousId), `${anonymousId} ${n}`],
    )
  }
  const listed = async () => {
    const { rows } = await pool.query<{ id: string }>(
      `select p.message_id as id from parked_erasure e join parked p on p.id = e.parked_id
        order by log_offset`,
    )
    return rows.map(({ id }) => id)
  }
  for (const who of [1, 2, 3]) await parkOne(10 + who, `a${who}`)
  const ids = ['a1', 'a3'].map((value) => ({ kind: 'anonymous' as const, value }))
  const id = await rig.ask({ kind: 'suppress_only', ids })
  rig.erase()
  await rig.reaches(id, 'waiting')
  expect(await listed()).toEqual(['a1 11', 'a3 13'])
  // Rounds that were on their way park more; meanwhile somebody is heard again.
  for (const who of [1, 2, 3]) await parkOne(20 + who, `a${who}`)
  const heard = await rig.ask({ kind: 'unsuppress', ids: ids.slice(1) })
  await rig.reaches(heard, 'done')
  rig.advance(10_000)
  await rig.reaches(id, 'done')
  expect(await listed()).toEqual(['a1 11', 'a3 13', 'a1 21'])
})

test('suppressions share one reading of what is parked, and no transaction stands open for it', async () => {
  const rig = await erasing()
  const ids = await Promise.all(
    ['u1', 'u2', 'u3'].map((id) => rig.ask({ kind: 'suppress_only', ids: [user(id)] })),
  )
  let open = 0
  const readings: number[] = []
  const stage = rig.erase({
    pool: {
      ...pool,
      query: (text, values) => {
        if (/from parked p\b/.test(text)) readings.push(open)
        return pool.query(text, values)
      },
      transaction: (work, options) => {
        open += 1
        return pool.transaction(work, options).finally(() => {
          open -= 1
        })
      },
    },
  })
  try {
    for (const id of ids) await rig.reaches(id, 'waiting')
    rig.advance(10_000)
    for (const id of ids) await rig.reaches(id, 'done')
  } finally {
    await stage.stop()
  }
  // Once when they are in force, and once when the rounds have ended.
  expect(readings).toEqual([0, 0])
})

test('whom a replay was asked for is forgotten with the user, and selects nobody else instead', async () => {
  const rig = await erasing()
  await pool.query('truncate replay cascade')
  await rig.send(
    { type: 'identify', userId: 'secret-u1', anonymousId: 'secret-a1' },
    { userId: 'u2' },
  )
  await rig.caughtUp()
  const replay = (slot: number, workspaceId: number, ids: readonly (readonly string[] | null)[]) =>
    pool.query(
      `insert into replay (workspace_id, destination_id, actor, state, by, since, until, source_ids, user_ids,
         anonymous_ids, rate_per_second, slot, created_at) values ($1, $2::int, 'a', 'paused', 'receivedAt', $3, $3, '{1}', $4, $5, 1, $2::int, $3)`,
      [workspaceId, slot, rig.clock(), ...ids],
    )
  await replay(1, 1, [['secret-u1'], null])
  await replay(2, 1, [['u2', 'secret-u1'], ['secret-a1']])
  await replay(3, 1, [['u2'], null])
  await replay(4, 2, [['secret-u1'], null])
  const id = await rig.ask({ ids: [user('secret-u1')] })
  rig.erase()
  await finish(rig, id)
  const { rows } = await pool.query(
    'select user_ids as users, anonymous_ids as visitors from replay order by id',
  )
  expect(rows).toEqual([
    { users: [], visitors: [] },
    { users: ['u2'], visitors: [] },
    { users: ['u2'], visitors: null },
    { users: ['secret-u1'], visitors: null },
  ])
  await pool.query('truncate replay cascade')
})

test('of attempts for others only the answer goes that has the id, and that only in its workspace', async () => {
  const rig = await erasing()
  await pool.query('truncate attempt')
  await pool.query(`create table if not exists attempt_test partition of attempt default`)
  await pool.query(
    `insert into workspace (id, name, regional_access) overriding system value values (77, 'other', false)`,
  )
  await pool.query(
    `insert into destination (id, workspace_id, name, type) overriding system value values (77, 77, 'other', 'webhook')`,
  )
  const key = logKey({ workspaceId: 1, sourceId: 1, userId: '5', anonymousId: null })
  const own = createHash('sha1').update(key).digest().readBigInt64BE(0)
  for (const [offset, destinationId, chain, answer] of [
    [1, 1, own, 'thank you'],
    [2, 1, own + 1n, 'bad request 5'],
    [3, 1, own + 1n, '{"error":"no\\n5"}'],
    [4, 1, own + 1n, 'thank you'],
    [5, 77, own + 1n, 'bad request 5'],
    // As others than we write JSON.
    [6, 1, own + 1n, '{"error":"no a\\/\\u00e9"}'],
    // An id that names nobody.
    [7, 1, own + 1n, 'code -1'],
  ] as const)
    await pool.query(
      `insert into attempt (started_at, topic, partition, log_offset, destination_id, chain, message_id, attempt,
         url, duration_ms, outcome, response_head) values ($1, 'calls', 0, $2, $3, $4, 'm', 1, 'u', 1, 'final', $5)`,
      [rig.clock(), offset, destinationId, chain, answer],
    )
  const id = await rig.ask({ ids: [user('5'), user('a/é'), user('-1')] })
  rig.erase()
  await finish(rig, id)
  const { rows } = await pool.query(
    'select log_offset::int as offset, response_head as answer from attempt order by 1',
  )
  expect(rows).toEqual([
    { offset: 2, answer: null },
    { offset: 3, answer: null },
    { offset: 4, answer: 'thank you' },
    { offset: 5, answer: 'bad request 5' },
    { offset: 6, answer: null },
    { offset: 7, answer: 'code -1' },
  ])
  const { rows: counted } = await pool.query('select stores from deletion_request where id = $1', [
    id,
  ])
  expect(counted).toMatchObject([{ stores: { attempts: 4 } }])
})
