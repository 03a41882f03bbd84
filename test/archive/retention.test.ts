// What the archive is for the rest of the line: the log waits for it, and new audiences get their past from it.
import { afterEach, expect, test } from 'vitest'
import { startArchive } from '../../src/archive/archive.ts'
import { archiveHistory } from '../../src/archive/history.ts'
import { openStore } from '../../src/archive/store.ts'
import { postgresAppender, postgresSource } from '../../src/log/postgres.ts'
import { tidyDays } from '../../src/log/postgres-maintain.ts'
import { gainPosition, movePositions } from '../../src/postgres/position.ts'
import type { Running } from '../../src/running.ts'
import { audience, codec, day, performed, aRig as projectRig } from '../project/rig.ts'
import { cloneDatabase } from '../support/database.ts'
import { aFolder, until } from './rig.ts'

const { pool } = await cloneDatabase()
const running: Running[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()))
})

test('the log keeps days for an archive that is configured or was heard of, and for no other', async () => {
  const begin = Date.UTC(1997, 0, 1)
  let now = begin
  const clock = () => new Date(now)
  const appender = postgresAppender({ pool, clock, partitions: 1 })
  const source = postgresSource({ pool, partitions: 1 })
  await source.bounds('calls')
  const archived = ['calls'] as const
  const key = { reader: 'archive', topic: 'calls', partition: 0 } as const
  const { epoch } = await gainPosition(pool, key)
  await appender.append('calls', [{ key: 'one', value: Buffer.from('a') }])
  const at = new Date(begin + 9 * day)
  expect((await tidyDays(pool, { at, retentionDays: 7, archived })).held).toHaveLength(1)
  const other = await tidyDays(pool, { at, retentionDays: 7, archived: ['outbound'] })
  expect(other.held).toEqual([])
  expect(other.dropped).not.toEqual([])
  now = begin + 20 * day
  await appender.append('calls', [{ key: 'one', value: Buffer.from('b') }])
  const later = new Date(now + 9 * day)
  await pool.query(
    `insert into archive_partition (topic, partition, log_start, log_end, seen_at)
     values ('calls', 0, 0, 1, $1)`,
    [new Date(later.getTime() - 60_000)],
  )
  expect((await tidyDays(pool, { at: later, retentionDays: 7 })).held).toHaveLength(1)
  await movePositions(pool, [{ ...key, epoch, next: 2n }])
  expect((await tidyDays(pool, { at: later, retentionDays: 7, archived })).held).toEqual([])
  await appender.close()
  await source.close()
})

test('an audience made after the log let go of everything gets its past from the archive', async () => {
  const rig = await projectRig(pool)
  const place = { type: 'folder', path: await aFolder() } as const
  const store = openStore({ place, credentials: null })
  // The log carries any bytes: a line holds on to those it could not make again.
  const codecs = { call: codec, outbound: codec as never }
  const source = rig.log.source()
  const history = archiveHistory({ log: source, pool, store, codecs })
  const archive = startArchive({
    ...{ source, codecs, pool, store, clock: rig.clock, logger: rig.deps.logger },
    ...{ topics: ['calls', 'calls.import'], compression: 'gzip' },
    limits: { tickMs: 5, segmentMsMax: 60_000, idleMs: 50 },
  })
  running.push(archive, rig.start({ history }))
  for (let at = 0; at < 40; at++)
    await rig.send({ userId: `u${at % 5}` }, { userId: 'once', messageId: `again${at % 2}` })
  await rig.send({ userId: 'imported', topic: 'calls.import' })
  await rig.caughtUp()
  const bounds = async () => {
    const topics = ['calls', 'calls.import'] as const
    const all = await Promise.all(topics.map((topic) => source.bounds(topic)))
    return topics.flatMap((topic, at) =>
      (all[at] ?? []).map((bound, partition) => ({ ...bound, topic, partition })),
    )
  }
  await until('all is archived', async () => {
    rig.advance(60_000)
    const { rows } = await pool.query<{ place: string; next: bigint }>(
      `select topic || '/' || partition as place, next from position where reader = 'archive'`,
    )
    const nexts = new Map(rows.map(({ place, next }) => [place, next]))
    return (await bounds()).every(
      ({ topic, partition, end }) => (nexts.get(`${topic}/${partition}`) ?? 0n) >= end,
    )
  })
  for (const { topic, partition, end } of await bounds()) rig.log.truncate(topic, partition, end)
  rig.live.replace({
    audiences: [audience(1, performed('gte', 8)), audience(2, performed('eq', 1))],
  })
  await rig.built()
  expect(await rig.members(1)).toEqual(['u0', 'u1', 'u2', 'u3', 'u4'])
  expect(await rig.members(2)).toEqual(['imported'])
})
