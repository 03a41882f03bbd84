// The archive of a Kafka log, and its history once the broker has let go of what was archived.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, inject, test } from 'vitest'
import { startArchive } from '../../src/archive/archive.ts'
import { archiveHistory } from '../../src/archive/history.ts'
import { openStore } from '../../src/archive/store.ts'
import { logKey } from '../../src/domain/message.ts'
import { ensureTopics, kafkaAppender, kafkaSource } from '../../src/log/kafka.ts'
import { cloneDatabase } from '../support/database.ts'
import { directAdmin, topicsOf, truncate } from '../support/kafka-harness.ts'
import { aCall, aFolder, codecs, plain, readAll, until } from './rig.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []

describe.skipIf(brokers.length === 0)('on Kafka', async () => {
  const { pool } = await cloneDatabase()

  test('what the broker has let go of is read from segments, and the rest from the broker', async () => {
    const prefix = `arc${randomBytes(4).toString('hex')}.`
    const logger = pino({ level: 'silent' })
    const connection = { brokers, prefix, logger }
    const partitions = 2
    await ensureTopics({ ...connection, partitions })
    const appender = kafkaAppender({ ...connection, partitions })
    const source = kafkaSource(connection)
    const store = openStore({
      place: { type: 'folder', path: await aFolder() },
      credentials: null,
    })
    let now = Date.UTC(2026, 0, 10)
    const archive = startArchive({
      ...{ source, codecs, pool, store, logger, clock: () => new Date(now) },
      ...{ topics: ['calls'], compression: 'zstd' },
      limits: { tickMs: 20, segmentMsMax: 60_000, segmentBytesMax: 20_000, blockBytesMax: 5_000 },
    })
    const admin = directAdmin(brokers)
    await admin.connect()
    try {
      const calls = Array.from({ length: 2_000 }, (_, at) => aCall({ userId: `u${at % 50}` }))
      for (let at = 0; at < calls.length; at += 100)
        await appender.append(
          'calls',
          calls
            .slice(at, at + 100)
            .map((call) => ({ key: logKey(call), value: codecs.call.encode(call) })),
        )
      const ends = (await source.bounds('calls')).map(({ end }) => end)
      const range = (partition: number) =>
        ({ topic: 'calls', partition, from: 0n, until: ends[partition] ?? 0n }) as const
      const held = [await readAll(source, range(0)), await readAll(source, range(1))]
      expect(held.flat()).toHaveLength(2_000)
      await until('all is archived', async () => {
        now += 60_000
        const { rows } = await pool.query<{ partition: number; next: bigint }>(
          `select partition, next from position where reader = 'archive' order by 1`,
        )
        return (
          rows.length === 2 && rows.every(({ partition, next }) => next >= (ends[partition] ?? 0n))
        )
      })
      const history = archiveHistory({ log: source, pool, store, codecs })
      for (const share of [2n, 1n]) {
        for (const [partition, end] of ends.entries())
          await truncate(admin, { topic: `${prefix}calls`, partition, before: end / share })
        await until('the broker has let go of them', async () =>
          (await source.bounds('calls')).every(
            ({ start }, partition) => start >= (ends[partition] ?? 0n) / share,
          ),
        )
        expect((await history.bounds('calls')).map(({ start }) => start)).toEqual([0n, 0n])
        for (const partition of [0, 1])
          expect(plain(await readAll(history, range(partition)))).toEqual(
            plain(held[partition] ?? []),
          )
      }
    } finally {
      await archive.stop()
      await source.close()
      await appender.close()
      await admin.deleteTopics({ topics: topicsOf(prefix) })
      await admin.disconnect()
    }
  }, 200_000)
})
