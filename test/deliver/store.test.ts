import { expect, test } from 'vitest'
import { searchAttempts } from '../../src/deliver/attempt-store.ts'
import { claimDue, demoteFollowers, releaseHeads } from '../../src/deliver/chain-store.ts'
import { releaseHeld } from '../../src/deliver/hold-store.ts'
import { bodySpan, dropSpan, listSpans, spanOf } from '../../src/deliver/spans.ts'
import { deleteDelivered, insertParked, type ParkRow } from '../../src/deliver/store.ts'
import { chainOfKey } from '../../src/domain/chain.ts'
import { logKey } from '../../src/domain/message.ts'
import { snapshotAge } from '../../src/postgres/horizon.ts'
import type { Sql } from '../../src/postgres/sql.ts'
import { aDestination, aLive, to } from '../support/configuration.ts'
import { until } from '../support/until.ts'
import { useRig } from './rig.ts'

const { receiver, open, rowsOf, drained, database } = await useRig()
const { pool } = database

const hourMs = 3_600_000
const start = Date.UTC(2024, 0, 1)

const aRow = (over: Partial<ParkRow> = {}): ParkRow => ({
  topic: 'calls',
  partition: 0,
  offset: 0,
  destinationId: 1,
  chain: 1n,
  messageId: 'm',
  type: 'track',
  body: null,
  reason: 'temporary',
  nextAt: new Date(start),
  firstTryAt: new Date(start),
  attempts: 1,
  finalUrls: [],
  lastReason: null,
  lastStatus: null,
  ...over,
})

const countBodies = async (): Promise<number> => {
  const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from parked_body')
  return rows[0]?.n ?? 0
}

test('a body is stored once for all destinations that park the same message', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const destinations = [1, 2, 3].map((id) =>
    aDestination({ id, name: `D${id}`, webhooks: to(hook.url) }),
  )
  const rig = open(aLive({ destinations }), { partitions: 1 })
  rig.start()
  // Parked behind the first one, in one transaction for each message.
  await rig.append([rig.aCall()])
  await drained(rig)
  await rig.append([rig.aCall(), rig.aCall(), rig.aCall()])
  await drained(rig)
  const rows = await rowsOf('parked')
  expect(rows).toHaveLength(12)
  const later = rows.slice(3).map(({ body_id }) => body_id)
  expect(later).not.toContain(null)
  expect(new Set(later).size).toBe(3)
})

test('bodies are bytes: what is stored is what is sent, whatever is in it', async () => {
  const hook = await receiver()
  hook.reply((_, index) => (index === 0 ? 503 : 200))
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start()
  await rig.append([rig.aCall({}, { properties: { z: 1, a: 'é\u0001\\u0000😀', 10: 1, 2: 2 } })])
  await drained(rig)
  const { rows } = await pool.query<{ bytes: Buffer }>('select bytes from parked_body')
  expect(rows[0]?.bytes).toEqual(hook.requests[0]?.body)
  rig.setNow(rig.now() + 20_000)
  await until(() => hook.requests.length === 2, 'it is tried again')
  expect(hook.requests[1]?.body).toEqual(hook.requests[0]?.body)
})

test('an hour of bodies is dropped when no parked row refers to it; the dead keep their own', async () => {
  const hook = await receiver()
  hook.reply(() => 503)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  const life = rig.start({ houseEveryMs: 10 })
  await rig.append([rig.aCall({ userId: 'a' }), rig.aCall({ userId: 'b' })])
  await drained(rig)
  const [hour] = await listSpans(pool, bodySpan)
  expect(hour).toBe(spanOf(bodySpan, rig.now()))
  expect(await dropSpan(pool, { span: bodySpan, number: hour as number })).toBe(false)
  expect(await countBodies()).toBe(2)
  rig.setNow(rig.now() + 6 * hourMs)
  await until(async () => (await rowsOf('dead')).length === 2, 'their window is over')
  await until(
    async () => !(await listSpans(pool, bodySpan)).includes(hour as number),
    'it is dropped',
  )
  const bodies = (await rowsOf('dead')).map(({ body }) => JSON.parse(String(body)).userId)
  expect(bodies.toSorted()).toEqual(['a', 'b'])
  await life.running.stop()
})

test('the dead are forgotten when they have been kept for long enough', async () => {
  const hook = await receiver()
  hook.reply(() => 404)
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start({ houseEveryMs: 10, deadKeepMs: 2 * 86_400_000 })
  await rig.append([rig.aCall()])
  await until(async () => (await rowsOf('dead')).length === 1, 'it is dead')
  rig.setNow(rig.now() + 86_400_000)
  await rig.append([rig.aCall({ userId: 'later' })])
  await until(async () => (await rowsOf('dead')).length === 2, 'another is dead')
  rig.setNow(rig.now() + 86_400_000 + 1)
  await until(async () => (await rowsOf('dead')).length === 1, 'the older one is forgotten')
})

const claimAll = (room: number, destinationIds: readonly number[], at: number) =>
  pool.transaction((tx) =>
    claimDue(tx, {
      lanes: destinationIds.map((destinationId) => ({ destinationId, room })),
      places: destinationIds.flatMap((destinationId) =>
        [0, 1].map((partition) => ({
          topic: 'calls' as const,
          partition,
          destinationId,
          look: room,
          until: Number.MAX_SAFE_INTEGER,
        })),
      ),
      owner: 'me',
      at: new Date(at),
      until: new Date(at + 30_000),
    }),
  )

test('a claim takes the rows that are due longest, of each destination its share', async () => {
  const sick = Array.from({ length: 400 }, (_, at) =>
    aRow({ offset: at, partition: at % 2, nextAt: new Date(start + at) }),
  )
  const small = Array.from({ length: 6 }, (_, at) =>
    aRow({ offset: 1_000 + at, destinationId: 2 + at, nextAt: new Date(start + 5_000) }),
  )
  await pool.transaction((tx) => insertParked(tx, [...sick, ...small], new Date(start)))
  const claimed = await claimAll(5, [1, 2, 3, 4, 5, 6, 7], start + 10_000)
  expect(claimed).toHaveLength(5 + 6)
  const sickClaimed = claimed.filter(({ destinationId }) => destinationId === 1)
  expect(sickClaimed.map(({ offset }) => Number(offset)).toSorted()).toEqual([0, 1, 2, 3, 4])
  // Leased rows are not due: the next claim goes on after them.
  const next = await claimAll(5, [1], start + 10_000)
  expect(next.map(({ offset }) => Number(offset)).toSorted()).toEqual([5, 6, 7, 8, 9])
})

test('a claim waits for nobody: rows that somebody has locked are passed over', async () => {
  const rows = [0, 1, 2].map((offset) => aRow({ offset }))
  await pool.transaction((tx) => insertParked(tx, rows, new Date(start)))
  await pool.transaction(async (tx) => {
    await tx.query('select from parked where log_offset = 0 for update')
    const claimed = await claimAll(5, [1], start + 1)
    expect(claimed.map(({ offset }) => Number(offset)).toSorted()).toEqual([1, 2])
  })
})

/** Rows of `parked` that are looked at. */
const readsOf = (work: (tx: Sql) => Promise<unknown>): Promise<number> =>
  pool.transaction(async (tx) => {
    const before = await countReads(tx)
    await work(tx)
    return (await countReads(tx)) - before
  })

const countReads = async (tx: Sql): Promise<number> => {
  const { rows } = await tx.query<{ reads: number }>(
    `select (idx_tup_fetch + seq_tup_read)::int as reads
       from pg_stat_xact_user_tables where relname = 'parked'`,
  )
  return rows[0]?.reads ?? Number.NaN
}

test('a claim out of a great many rows looks at few, though the planner knows nothing of them', async () => {
  const partitions = 36
  const rows = Array.from({ length: 6_000 }, (_, at) =>
    aRow({
      offset: at,
      partition: at % partitions,
      chain: BigInt(at % (partitions * 25)),
      reason: 'breaker_open',
      nextAt: new Date(start + hourMs + at),
    }),
  )
  await insertParked(pool, rows, new Date(start))
  const places = Array.from({ length: partitions }, (_, partition) => ({
    topic: 'calls' as const,
    partition,
  }))
  const lanes = [{ destinationId: 1, room: 10 }]
  const chains = [898n, 899n].map((chain) => ({
    topic: 'calls' as const,
    partition: Number(chain) % partitions,
    destinationId: 1,
    chain,
  }))
  const at = new Date(start + 1_000)
  const reads = {
    held: await readsOf((tx) => releaseHeld(tx, { rooms: lanes, partitions: places, at })),
    due: await readsOf((tx) =>
      claimDue(tx, {
        lanes,
        places: places.map((place) => ({
          ...place,
          destinationId: 1,
          look: 10,
          until: Number.MAX_SAFE_INTEGER,
        })),
        owner: 'me',
        at,
        until: new Date(start + 30_000),
      }),
    ),
    heads: await readsOf((tx) => releaseHeads(tx, chains, at)),
    followers: await readsOf((tx) => demoteFollowers(tx, chains, { owner: 'me', at })),
  }
  expect(reads.held).toBeLessThanOrEqual(40)
  expect(reads.due).toBeLessThanOrEqual(60)
  expect(reads.heads).toBeLessThanOrEqual(20)
  expect(reads.followers).toBeLessThanOrEqual(60)
})

test('only the owner of a lease that still runs settles a row', async () => {
  await pool.transaction((tx) => insertParked(tx, [aRow()], new Date(start)))
  const [row] = await claimAll(1, [1], start + 1)
  const ids = [row?.id as bigint]
  const settle = (owner: string, at: number) =>
    deleteDelivered(pool, ids, { owner, at: new Date(at) })
  expect((await settle('somebody', start + 2)).ids.size).toBe(0)
  expect((await settle('me', start + 30_001)).ids.size).toBe(0)
  expect(await rowsOf('parked')).toHaveLength(1)
  expect((await settle('me', start + 30_000)).ids.size).toBe(1)
  expect(await rowsOf('parked')).toEqual([])
})

const anything = {
  destinationId: null,
  url: null,
  outcome: null,
  reason: null,
  status: null,
  messageId: null,
  chains: null,
  recoveryId: null,
  isOrderSuspended: null,
}

test('attempts are found by what they were, and by the page', async () => {
  const [a, b] = [await receiver(), await receiver()]
  a.reply(() => ({ status: 500, body: 'x'.repeat(20_000) }))
  const destinations = [
    aDestination({ id: 1, name: 'A', webhooks: to(a.url) }),
    aDestination({ id: 2, name: 'B', webhooks: to(b.url) }),
  ]
  const rig = open(aLive({ destinations }), { limits: { attemptHeadMax: 8_192 } })
  rig.start()
  const calls = ['u1', 'u2', 'u3'].map((userId) => rig.aCall({ userId }))
  for (const call of calls) {
    await rig.append([call])
    await drained(rig)
    rig.setNow(rig.now() + 1)
  }
  await until(async () => (await rowsOf('attempt')).length === 6, 'all attempts are written')
  const span = { since: new Date(start), until: new Date(start + 1_000) }
  const find = async (filter: object, limit = 10) =>
    searchAttempts(pool, { ...anything, ...span, ...filter }, { after: null, limit })
  expect(await find({ destinationId: 1 })).toHaveLength(3)
  expect((await find({ url: b.url })).every(({ destinationId }) => destinationId === 2)).toBe(true)
  expect(await find({ outcome: 'delivered' })).toHaveLength(3)
  expect(await find({ status: 500 })).toHaveLength(3)
  expect(await find({ reason: 'status_500', messageId: 'm2' })).toHaveLength(1)
  expect(await find({ messageId: 'm2' })).toHaveLength(2)
  expect(await find({ chains: [chainOfKey(logKey(calls[2] as never))] })).toHaveLength(2)
  expect(await find({ isOrderSuspended: true })).toEqual([])
  expect(await find({ until: new Date(start) })).toEqual([])
  const [failed] = await find({ messageId: 'm1', destinationId: 1 })
  expect(failed?.responseHead?.length).toBe(8_192)
  expect(failed).toMatchObject({ attempt: 1, reused: false, tlsMs: null })
  expect(failed?.connectMs).toBeGreaterThanOrEqual(0)
  expect(failed?.firstByteMs).toBeGreaterThanOrEqual(0)
  const pages: string[] = []
  let after: { readonly startedAt: Date; readonly id: bigint } | null = null
  for (;;) {
    const page = await searchAttempts(pool, { ...anything, ...span }, { after, limit: 4 })
    pages.push(...page.map(({ id }) => String(id)))
    after = page.at(-1) ?? null
    if (page.length < 4) break
  }
  expect(pages).toHaveLength(6)
  expect(new Set(pages).size).toBe(6)
})

test('attempts of each day are in a table of their own, dropped when they have been kept', async () => {
  const hook = await receiver()
  const rig = open(aLive({ destinations: [aDestination({ webhooks: to(hook.url) })] }))
  rig.start({ houseEveryMs: 10, attemptKeepMs: 2 * 86_400_000 })
  for (let day = 0; day < 3; day += 1) {
    await rig.append([rig.aCall({ userId: `u${day}` })])
    await until(async () => (await rowsOf('attempt')).length === day + 1, `day ${day}`)
    rig.setNow(start + (day + 1) * 86_400_000)
  }
  const { rows } = await pool.query<{ n: number }>(
    'select count(*)::int as n from attempt group by tableoid',
  )
  expect(rows).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }])
  rig.setNow(start + 3 * 86_400_000 + 1)
  await until(async () => (await rowsOf('attempt')).length === 2, 'the first day is dropped')
})

test('a snapshot that is held for long shows', async () => {
  await pool.transaction(
    async (tx) => {
      await tx.query('select 1')
      await new Promise((resolve) => setTimeout(resolve, 60))
      expect(await snapshotAge(pool)).toBeGreaterThan(0.05)
    },
    { isolation: 'repeatable read' },
  )
})
