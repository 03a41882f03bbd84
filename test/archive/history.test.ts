// The archive before the log: readers of the past see one history, wherever the log begins by now.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Recorded } from '../../src/log/log.ts'
import { cloneDatabase } from '../support/database.ts'
import { aCall, aRig, plain, type Rig, readAll, start, until } from './rig.ts'
import { isArchived } from './whole.ts'

const { pool } = await cloneDatabase()
const hour = 3_600_000
const topic = 'calls'
const partition = 0
let rig: Rig
let held: readonly Recorded[]
let end: bigint

/** Calls of 30 hours, in segments of a few each, with offsets in between that hold nothing. */
beforeAll(async () => {
  rig = await aRig(pool)
  rig.start({ limits: { blockBytesMax: 300, segmentBytesMax: 900, segmentMsMax: 60_000 } })
  for (let at = 0; at < 30; at++) {
    rig.advance(hour)
    const receivedAt = rig.clock().getTime()
    await rig.send(...Array.from({ length: 6 }, (_, n) => aCall({ userId: `u${n}`, receivedAt })))
    if (at % 4 === 0) rig.log.hole(topic, partition)
  }
  await rig.send(...Array.from({ length: 6 }, (_, n) => aCall({ userId: `u${n}` })))
  await until('all is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  await rig.stop()
  end = (await rig.source.bounds(topic))[partition]?.end ?? 0n
  held = await readAll(rig.source, { topic, partition, from: 0n, until: end })
})

afterAll(() => rig.stop())

const between = (from: bigint, upTo: bigint) =>
  plain(held.filter(({ offset }) => offset >= from && offset < upTo))

/** The memory log cannot get back what it forgot, so a source that begins later stands in for it. */
const startingAt = (start: bigint): Rig['source'] => ({
  ...rig.source,
  bounds: async (of) => {
    const bounds = await rig.source.bounds(of)
    return bounds.map((each, at) => (of === topic && at === partition ? { ...each, start } : each))
  },
  read: (range) => rig.source.read({ ...range, from: range.from < start ? start : range.from }),
  offsetsAt: async (of, at) => {
    const offsets = await rig.source.offsetsAt(of, at)
    return offsets.map((each, n) => (n === partition && each < start ? start : each))
  },
})

const historyOver = (log: Rig['source']) => rig.history(log)

test('there are segments enough for the tests below to mean something', async () => {
  const { rows } = await pool.query('select from archive_segment where topic = $1', [topic])
  expect(rows.length).toBeGreaterThan(20)
  expect(held.length).toBeGreaterThan(50)
})

test('any range reads as the log held it, wherever the log begins by now', async () => {
  const offset = fc.bigInt({ min: 0n, max: end })
  await fc.assert(
    fc.asyncProperty(offset, offset, offset, async (start, one, other) => {
      const [from, upTo] = one < other ? [one, other] : [other, one]
      const read = await readAll(historyOver(startingAt(start)), {
        topic,
        partition,
        from,
        until: upTo,
      })
      expect(plain(read)).toEqual(between(from, upTo))
    }),
    { numRuns: 60 },
  )
})

test('what the log lets go of while it is read comes from the archive', async () => {
  let start = 0n
  const log = startingAt(0n)
  const shrinking: Rig['source'] = {
    ...log,
    bounds: (of) => startingAt(start).bounds(of),
    // Fetched in small pieces, and each time some more is gone.
    read: async function* (range) {
      for (let from = range.from; from < range.until; ) {
        const begin = from < start ? start : from
        const next = begin + 3n < range.until ? begin + 3n : range.until
        yield* log.read({ ...range, from: begin, until: next })
        from = next
        start = from + 10n < end ? from + 10n : start
      }
    },
  }
  const range = { topic, partition, from: 0n, until: end } as const
  expect(plain(await readAll(historyOver(shrinking), range))).toEqual(between(0n, end))
})

test('it begins where the archive does, and ends where the log does', async () => {
  const [of0, of1] = await historyOver(startingAt(end)).bounds(topic)
  expect(of0).toEqual({ start: 0n, end })
  expect(of1?.start).toBe(0n)
})

test('a log that has begun anew beyond the archive is read from its own start', async () => {
  const beyond = { ...startingAt(end + 5n) }
  const bounds = await historyOver(beyond).bounds(topic)
  expect(bounds[partition]?.start).toBe(end + 5n)
})

test('an instant is found in the archive as in the log, at the start of its segment', async () => {
  for (const hours of [1, 7, 15, 29]) {
    const at = new Date(start + hours * hour)
    const exact = (await rig.source.offsetsAt(topic, at))[partition] ?? 0n
    const [offset = 0n] = await historyOver(startingAt(end)).offsetsAt(topic, at)
    expect(offset).toBeLessThanOrEqual(exact)
    const { rows } = await pool.query<{ next: bigint }>(
      `select next_offset as next from archive_segment
        where topic = $1 and partition = $2 and first_offset <= $3
        order by first_offset desc limit 2`,
      [topic, partition, exact],
    )
    expect(offset).toBeGreaterThanOrEqual((rows.at(-1)?.next ?? 0n) - 20n)
    expect(await historyOver(rig.source).offsetsAt(topic, at)).toEqual(
      await rig.source.offsetsAt(topic, at),
    )
  }
})

test('a segment that was written anew while it was looked up is read under its new name', async () => {
  const { rows } = await pool.query<{ path: string }>(
    'select path from archive_segment where topic = $1 and partition = $2 and first_offset = 0',
    [topic, partition],
  )
  const path = rows[0]?.path ?? ''
  const renamed = path.replace('.0.ndjson', '.1.ndjson')
  const bytes = await readFile(join(rig.folder, path))
  await writeFile(join(rig.folder, renamed), bytes)
  let looks = 0
  const store: Rig['store'] = {
    ...rig.store,
    get: async (name) => {
      if (name !== path || looks++ > 0) return rig.store.get(name)
      await pool.query('update archive_segment set path = $2 where path = $1', [path, renamed])
      await rm(join(rig.folder, path))
      return rig.store.get(name)
    },
  }
  const range = { topic, partition, from: 0n, until: end } as const
  const read = await readAll(rig.history(startingAt(end), store), range)
  expect(plain(read)).toEqual(between(0n, end))
  await rm(join(rig.folder, renamed))
  await writeFile(join(rig.folder, path), bytes)
  await pool.query('update archive_segment set path = $2 where path = $1', [renamed, path])
})

test('a damaged segment is refused with its name, before a line of it is believed', async () => {
  const [path = ''] = await rig.named()
  const whole = await readFile(join(rig.folder, path))
  const damaged = Buffer.from(whole)
  damaged.writeUInt8(damaged.readUInt8(20) ^ 1, 20)
  await writeFile(join(rig.folder, path), damaged)
  const range = { topic, partition, from: 0n, until: end } as const
  await expect(readAll(historyOver(startingAt(end)), range)).rejects.toThrow(path)
  await writeFile(join(rig.folder, path), whole)
})

test('a hole in the archive is never read over', async () => {
  const { rows } = await pool.query<{ first: bigint; next: bigint }>(
    `delete from archive_segment where topic = $1 and partition = $2 and first_offset =
       (select first_offset from archive_segment where topic = $1 and partition = $2
         order by first_offset offset 3 limit 1) returning first_offset as first, next_offset as next`,
    [topic, partition],
  )
  const [gone] = rows
  const history = historyOver(startingAt(end))
  expect((await history.bounds(topic))[partition]?.start).toBe(gone?.next)
  const read = await readAll(history, { topic, partition, from: 0n, until: end }, gone?.next ?? 0n)
  expect(plain(read)).toEqual(between(gone?.next ?? 0n, end))
})
