// What only the Postgres log has: days that come and go, chunks, group commit.
import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Topic } from '../../src/log/log.ts'
import { maintainPostgresLog, postgresAppender, postgresSource } from '../../src/log/postgres.ts'
import { chunkBytesMax, pack, unpack } from '../../src/log/postgres-chunk.ts'
import { fetchChunks } from '../../src/log/postgres-fetch.ts'
import { type HeldDay, tidyDays } from '../../src/log/postgres-maintain.ts'
import { gainPosition, movePositions } from '../../src/postgres/position.ts'
import { cloneDatabase } from '../support/database.ts'
import { entry, eventually, follow, readAll, textOf } from './log.harness.ts'

const database = await cloneDatabase()
const { pool } = database
const day = 86_400_000
const begin = Date.UTC(1997, 0, 1)
let now = begin
const clock = () => new Date(now)
const appender = postgresAppender({ pool, clock })
const source = postgresSource({ pool })

afterAll(async () => {
  await appender.close()
  await source.close()
})

beforeEach(async () => {
  now = begin
  const tables = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'log_chunk'::regclass`,
  )
  for (const { name } of tables.rows) await pool.query(`drop table ${name}`)
  await pool.query(
    `update log_partition set start_offset = 0, next_offset = 0, appended_at = 'epoch'`,
  )
  await pool.query('truncate position, log_lease')
})

const appendOn = async (dayNumber: number, text: string, topic: Topic = 'calls') => {
  now = begin + dayNumber * day
  return (await appender.append(topic, [entry('one', text)]))[0] as {
    partition: number
    offset: bigint
  }
}

const tidy = (dayNumber: number) =>
  tidyDays(pool, { at: new Date(begin + dayNumber * day), retentionDays: 7 })

test('little of a day is looked at to analyse it', async () => {
  await appendOn(0, 'first')
  const { rows } = await pool.query(
    `select distinct attstattarget::int as target from pg_attribute
      where attrelid = 'log_chunk_19970101'::regclass and attnum > 0`,
  )
  expect(rows).toEqual([{ target: 10 }])
})

test('a few entries are read from the chunks that hold them, however much comes behind them', async () => {
  const places: bigint[] = []
  for (let at = 0; at < 40; at += 1) places.push((await appendOn(at % 3, 'x'.repeat(900))).offset)
  const place = await appendOn(3, 'last')
  const cursor = { ...place, topic: 'calls', from: 10n, until: 12n, after: new Date(0) } as const
  const [few] = await fetchChunks(pool, [cursor], 1_048_576)
  expect(few?.batch).toMatchObject({ from: 10n, next: 12n })
  expect(few?.batch?.entries.map(({ offset }) => offset)).toEqual([10n, 11n])
  const [all] = await fetchChunks(pool, [{ ...cursor, until: place.offset + 1n }], 1_048_576)
  expect(all?.batch?.entries).toHaveLength(places.length + 1 - 10)
})

const textsIn = async ({ partition }: { partition: number }) => {
  const end = (await source.bounds('calls'))[partition]?.end as bigint
  const batches = await readAll(source, { topic: 'calls', partition, from: 0n, until: end })
  return batches.flatMap(({ entries }) => entries).map(textOf)
}

describe('days', () => {
  test('an append makes the day it falls on, and reading runs across days', async () => {
    const place = await appendOn(0, 'first')
    await appendOn(40, 'second')
    await appendOn(400, 'third')
    expect(await textsIn(place)).toEqual(['first', 'second', 'third'])
    const at = await source.offsetsAt('calls', new Date(begin + 41 * day))
    expect(at[place.partition]).toBe(place.offset + 2n)
  })

  test('many appenders meet a new day at once', async () => {
    const appenders = Array.from({ length: 6 }, () => postgresAppender({ pool, clock }))
    now = begin + 3 * day
    const places = await Promise.all(
      appenders.map((each, index) => each.append('calls', [entry('one', `${index}`)])),
    )
    expect(new Set(places.map(([at]) => at?.offset))).toEqual(new Set([0n, 1n, 2n, 3n, 4n, 5n]))
    await Promise.all(appenders.map((each) => each.close()))
  })

  test('a clock that is behind does not turn time back in a partition', async () => {
    const place = await appendOn(5, 'ahead')
    await appendOn(2, 'behind')
    expect(await textsIn(place)).toEqual(['ahead', 'behind'])
    const at = await source.offsetsAt('calls', new Date(begin + 4 * day))
    expect(at[place.partition]).toBe(place.offset)
  })

  test('a day past retention goes, and the log starts after it', async () => {
    const place = await appendOn(0, 'old')
    await appendOn(8, 'new')
    expect(await tidy(7)).toEqual({ dropped: [], held: [] })
    expect(await tidy(8)).toEqual({ dropped: ['1997-01-01'], held: [] })
    expect((await source.bounds('calls'))[place.partition]).toEqual({ start: 1n, end: 2n })
    expect(await textsIn(place)).toEqual(['new'])
  })

  test('a day that a group has not committed past stays, and everything after it', async () => {
    const place = await appendOn(0, 'old')
    await appendOn(1, 'also old')
    now = begin + 20 * day
    const follower = follow(source, { group: 'slow', from: () => 0n })
    await eventually('all is read', () => follower.texts().length === 2)
    const need = { reader: 'slow', topic: 'calls', partition: place.partition, next: 0n, end: 1n }
    const held: HeldDay[] = [{ day: '1997-01-01', needs: [need] }]
    expect(await tidy(20)).toEqual({ dropped: [], held })
    const lease = follower.leases.find(({ partition }) => partition === place.partition)
    await lease?.commit(1n)
    expect((await tidy(20)).dropped).toEqual(['1997-01-01'])
    await lease?.commit(2n)
    expect((await tidy(20)).dropped).toContain('1997-01-02')
    await follower.stop()
  })

  test('a day that a reader’s position has not passed stays', async () => {
    const { partition } = await appendOn(0, 'old')
    const key = { reader: 'project', topic: 'calls', partition } as const
    const { epoch } = await gainPosition(pool, key)
    expect((await tidy(20)).held).toMatchObject([{ needs: [{ reader: 'project', next: 0n }] }])
    await movePositions(pool, [{ ...key, epoch, next: 1n }])
    expect((await tidy(20)).dropped).toContain('1997-01-01')
  })

  test('the larger of a reader’s position and what its group committed counts', async () => {
    const place = await appendOn(0, 'old')
    const follower = follow(source, { group: 'project', from: () => 0n })
    await eventually('it is read', () => follower.texts().length === 1)
    const key = { reader: 'project', topic: 'calls', partition: place.partition } as const
    const { epoch } = await gainPosition(pool, key)
    await movePositions(pool, [{ ...key, epoch, next: 1n }])
    expect((await tidy(20)).dropped).toContain('1997-01-01')
    await follower.stop()
  })

  test('a reader that comes back to a dropped day dies with log_gap', async () => {
    await appendOn(0, 'old')
    await appendOn(20, 'new')
    await tidy(20)
    const follower = follow(source, { from: () => 0n })
    await expect(follower.done).rejects.toMatchObject({ code: 'log_gap' })
  })

  test('maintenance follows the clock it is given, and tells of days held back', async () => {
    const place = await appendOn(0, 'old')
    const key = { reader: 'deliver', topic: 'calls', partition: place.partition } as const
    const { epoch } = await gainPosition(pool, key)
    const held: string[] = []
    const onHeld = ({ day: name }: HeldDay) => held.push(name)
    const maintenance = maintainPostgresLog({ pool, clock, onHeld })
    now = begin + 9 * day
    await eventually('the day is held', () => held.includes('1997-01-01'))
    await movePositions(pool, [{ ...key, epoch, next: 1n }])
    now += day
    await eventually('the day is dropped', async () => {
      return (await source.bounds('calls'))[place.partition]?.start === 1n
    })
    await maintenance.stop()
  })
})

describe('chunks', () => {
  const anEntry = fc.record({
    key: fc.string({ unit: 'grapheme', maxLength: 12 }),
    value: fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.constantFrom(new Uint8Array(chunkBytesMax - 9), new Uint8Array(chunkBytesMax * 2)),
    ),
  })

  test('unpacking gives back what was packed, in chunks that are small or hold one entry', () => {
    fc.assert(
      fc.property(fc.array(anEntry, { maxLength: 60 }), (entries) => {
        const counts = { calls: 3, 'calls.import': 1, outbound: 1, 'outbound.replay': 1 }
        const { bytes, chunks, slots } = pack([{ topic: 'calls', entries }], counts)
        const back = new Map<string, { key: string; value: Uint8Array }>()
        for (const chunk of chunks) {
          expect(chunk.size <= chunkBytesMax || chunk.entries === 1).toBe(true)
          const payload = bytes.subarray(chunk.at, chunk.at + chunk.size)
          const [first, next] = [BigInt(chunk.before), BigInt(chunk.before + chunk.entries)]
          const range = { from: 0n, until: next }
          for (const { offset, ...rest } of unpack({ first, next, payload }, range))
            back.set(`${chunk.partition}/${offset}`, rest)
        }
        const expected = entries.map(({ key, value }) => ({ key, value: Buffer.from(value) }))
        const found = slots[0]?.map(({ partition, index }) => back.get(`${partition}/${index}`))
        expect(found?.map((each) => each && { ...each, value: Buffer.from(each.value) })).toEqual(
          expected,
        )
        expect(back.size).toBe(entries.length)
      }),
    )
  })
})

describe('group commit', () => {
  test('eight appenders over the same partitions never deadlock', async () => {
    const appenders = Array.from({ length: 8 }, () => postgresAppender({ pool, clock }))
    const sent = await Promise.all(
      appenders.map(async (each, writer) => {
        let count = 0
        for (let round = 0; round < 30; round++) {
          // Each in an order of its own, over nearly every partition.
          const entries = Array.from({ length: 30 }, (_, index) =>
            entry(`k-${(index * 7 + writer * 13 + round * 3) % 100}`, 'x'),
          )
          count += (await each.append('calls', entries)).length
        }
        return count
      }),
    )
    expect(sent).toEqual(Array(8).fill(900))
    const ends = (await source.bounds('calls')).reduce((sum, { end }) => sum + end, 0n)
    expect(ends).toBe(7_200n)
    await Promise.all(appenders.map((each) => each.close()))
    await pool.query('select pg_stat_force_next_flush()')
    const { rows } = await pool.query<{ deadlocks: bigint }>(
      'select deadlocks from pg_stat_database where datname = current_database()',
    )
    expect(rows).toEqual([{ deadlocks: 0n }])
  })

  test('what waits while one append commits goes into the next one, in order', async () => {
    const lock = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const holding = pool.transaction(async (tx) => {
      await tx.query(`select * from log_partition where topic = 'calls' for update`)
      held.resolve()
      await lock.promise
    })
    await held.promise
    const appends = Array.from({ length: 200 }, (_, index) =>
      appender.append('calls', [entry('one', `${index}`)]),
    )
    lock.resolve()
    await holding
    const places = (await Promise.all(appends)).flat()
    expect(places.map(({ offset }) => offset)).toEqual(
      Array.from({ length: 200 }, (_, index) => BigInt(index)),
    )
    const { rows } = await pool.query<{ chunks: bigint }>(
      'select count(*) as chunks from log_chunk',
    )
    expect(rows[0]?.chunks).toBeLessThan(10n)
  })

  test('an append that would make too many bytes wait is refused at once', async () => {
    const small = postgresAppender({ pool, clock, limits: { waitingBytesMax: 10_000 } })
    const large = entry('one', 'x'.repeat(9_000))
    const appends = await Promise.allSettled([
      small.append('calls', [large]),
      small.append('calls', [large]),
    ])
    expect(appends).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'log_unavailable', retriable: true } },
    ])
    expect(await small.append('calls', [large])).toHaveLength(1)
    await small.close()
  })

  test('a lock that is held too long rejects the append in time, and later ones go on', async () => {
    const release = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const holding = pool.transaction(async (tx) => {
      await tx.query(`select * from log_partition where topic = 'calls' for update`)
      held.resolve()
      await release.promise
    })
    await held.promise
    const hasty = postgresAppender({ pool, clock, limits: { deadlineMs: 600 } })
    await expect(hasty.append('calls', [entry('one', 'late')])).rejects.toMatchObject({
      code: 'log_unavailable',
    })
    release.resolve()
    await holding
    // A machine that is busy may take longer than it waits.
    const after = () => hasty.append('calls', [entry('one', 'after')])
    const isTaken = async () => (await after().catch(() => [])).length === 1
    await eventually('an append goes through', isTaken)
    await hasty.close()
  })
})
