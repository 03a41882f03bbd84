import pino from 'pino'
import { beforeEach, expect, test } from 'vitest'
import type { Outbound } from '../../src/domain/message.ts'
import { openCodecs } from '../../src/log/avro.ts'
import type { Sql } from '../../src/postgres/sql.ts'
import { type SyncLimits, syncLimits } from '../../src/sync/limits.ts'
import { copyOutbox, outboxRows } from '../../src/sync/outbox-copy.ts'
import { openRelay, type Relay, takeOver } from '../../src/sync/relay.ts'
import type { Term } from '../../src/sync/term.ts'
import { aLive } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'
import { openWorld, type World } from './stage.ts'

const { pool } = await cloneDatabase()
const codecs = await openCodecs({})
const signal = new AbortController().signal
let world: World
let reads: string[]
let relay: Relay

beforeEach(async () => {
  world = await openWorld(pool)
  reads = []
  relay = await open({})
})

const open = async (limits: Partial<SyncLimits>): Promise<Relay> => {
  // What is asked of the database: whether the outbox was read can be seen by nothing else.
  const watched: Sql['query'] = (text, values) => {
    if (/body\s+from outbox/.test(text)) reads.push(text)
    return pool.query(text, values)
  }
  const deps = {
    ...{ codecs, pool: { ...pool, query: watched }, live: aLive({}), clock: world.clock },
    ...{ source: world.log.source(), appender: world.log.appender(), sweepDue: async () => 0 },
    ...{ logger: pino({ level: 'silent' }), limits: { ...syncLimits, ...limits } },
  }
  const { epoch, bounds } = await takeOver(deps)
  const term: Term = { deps, epoch, seat: pool, signal }
  return openRelay(term, bounds)
}

const rowsOf = (shard: number, first: number, count: number): Outbound[] =>
  Array.from({ length: count }, (_, at) => ({
    ...{ messageId: `${shard}-${first + at}`, origin: 'audience', type: 'identify' },
    ...{ workspaceId: 1, destinationId: 1, userId: `user-${shard}`, shard, seq: first + at },
    timestamp: world.clock().getTime(),
    receivedAt: world.clock().getTime(),
    body: Buffer.from(`{"of":"${shard}-${first + at}"}`),
  }))

const saved = async (rows: Outbound[]): Promise<Outbound[]> => {
  const posted = { runId: 1, at: world.clock(), messages: rows }
  await pool.connect((connection) => connection.copyIn(copyOutbox, outboxRows(posted)))
  return rows
}

const sent = async () => (await world.outbound()).map(({ messageId }) => messageId).sort()

const outbox = async () => (await pool.query('select shard, seq from outbox')).rows

test('what was handed over is sent as it stands in the outbox, without being read back', async () => {
  const rows = await saved([...rowsOf(1, 1, 3), ...rowsOf(2, 1, 2)])
  relay.hand(rows)
  await relay.forward()
  expect(reads).toEqual([])
  expect(await outbox()).toEqual([])
  const found = await world.outbound()
  expect(found.toSorted((a, b) => a.shard - b.shard || a.seq - b.seq)).toEqual(rows)
})

test('what erasure took from the outbox meanwhile is not sent', async () => {
  const rows = await saved([...rowsOf(1, 1, 3), ...rowsOf(2, 1, 2)])
  await pool.query('delete from outbox where shard = 1 and seq = 2')
  relay.hand(rows)
  await relay.forward()
  expect(await sent()).toEqual(['1-1', '1-3', '2-1', '2-2'])
  expect(await outbox()).toEqual([])
})

test('what others wrote before it is sent before it', async () => {
  await saved(rowsOf(1, 1, 2))
  const rows = await saved(rowsOf(1, 3, 2))
  await saved(rowsOf(1, 5, 1))
  relay.hand(rows)
  await relay.drain()
  expect((await world.outbound()).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
})

test('more than is kept in memory is read back, and nothing is sent twice', async () => {
  relay = await open({ handedRowsMax: 3 })
  relay.hand(await saved(rowsOf(1, 1, 3)))
  relay.hand(await saved(rowsOf(1, 4, 2)))
  relay.hand(await saved(rowsOf(2, 1, 1)))
  await relay.forward()
  expect(reads.length).toBeGreaterThan(0)
  expect(await sent()).toEqual(['1-1', '1-2', '1-3', '1-4', '1-5', '2-1'])
  expect(await outbox()).toEqual([])
})

test('no more bytes are kept in memory than may be, until they are sent', async () => {
  const bytes = rowsOf(1, 1, 2).reduce((sum, { body }) => sum + body.length, 0)
  relay = await open({ handedBytesMax: bytes })
  relay.hand(await saved(rowsOf(1, 1, 2)))
  await relay.forward()
  relay.hand(await saved(rowsOf(1, 3, 2)))
  await relay.forward()
  expect(reads).toEqual([])
  relay.hand(await saved(rowsOf(1, 5, 2)))
  relay.hand(await saved(rowsOf(1, 7, 1)))
  await relay.forward()
  expect(reads.length).toBeGreaterThan(0)
  expect((await world.outbound()).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(await outbox()).toEqual([])
})

test('whoever was replaced sends nothing of what was handed to it', async () => {
  relay.hand(await saved(rowsOf(1, 1, 2)))
  await open({})
  await expect(relay.forward()).rejects.toMatchObject({ code: 'position_lost' })
  expect(await sent()).toEqual([])
})
