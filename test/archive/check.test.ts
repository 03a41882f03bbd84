// Checking an archive, and making its index anew from the store alone.
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkArchive } from '../../src/archive/inspect.ts'
import { pathOf, readPath, type SegmentName } from '../../src/archive/name.ts'
import { reindexArchive } from '../../src/archive/reindex.ts'
import type { Store, Stored } from '../../src/archive/store.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { aCall, aRig, plain, type Rig, readAll, until } from './rig.ts'
import { isArchived } from './whole.ts'

const { pool, url } = await cloneDatabase()
const limits = { segmentMsMax: 60_000, segmentBytesMax: 1_200, blockBytesMax: 700 }
const whole = { isMade: true, entries: 60, leftOut: 0, refused: [] }
let rig: Rig

const archived = () =>
  until('all is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })

beforeEach(async () => {
  rig = await aRig(pool)
  await rig.send(...Array.from({ length: 60 }, (_, at) => aCall({ userId: `u${at % 4}` })))
  rig.start({ limits })
  await archived()
  await rig.stop()
})

afterEach(() => rig.stop())

/** The order in which a store tells of its files means nothing. */
const backwards = (store: Store): Store => ({
  ...store,
  list: async function* (folder) {
    const all: Stored[] = []
    for await (const one of store.list(folder)) all.unshift(one)
    yield* all
  },
})

const index = async () => {
  const { rows } = await pool.query(
    `select topic, partition, first_offset, next_offset, path, generation, entries, bytes, sha256,
            received_from, received_to, timestamp_from, timestamp_to
       from archive_segment order by 1, 2, 3`,
  )
  return rows
}

test('an archive that is as it should be is found so', async () => {
  const checked = await checkArchive(pool, rig.store)
  expect(checked.findings).toEqual([])
  expect(checked.entries).toBe(60)
  expect(checked.segments).toBe((await rig.files()).length)
})

test('what is missing, damaged, cut off or left out is found, each by its name', async () => {
  const named = await rig.named()
  const [first = '', second = '', third = ''] = named
  const last = named.at(-1) ?? ''
  const inSame = named.filter((path) => path.startsWith(last.slice(0, 11)))
  expect(inSame.length).toBeGreaterThan(1)
  await rm(join(rig.folder, first))
  const bytes = await readFile(join(rig.folder, second))
  await writeFile(join(rig.folder, second), bytes.subarray(0, -1))
  await pool.query('update archive_segment set entries = entries + 1 where path = $1', [third])
  await pool.query('delete from archive_segment where path = $1', [last])
  const { findings } = await checkArchive(pool, rig.store)
  const problems = new Map(findings.map(({ path, problem }) => [path, problem]))
  expect(problems.get(first)).toContain('not there')
  expect(problems.get(second)).toContain('cut off')
  expect(problems.get(third)).toContain('entries, not')
  expect(findings.some(({ problem }) => problem.includes('in no segment'))).toBe(true)
  expect(findings).toHaveLength(4)
})

test('the index is made anew from the store alone, the same, and archiving goes on after it', async () => {
  const before = await index()
  const leftOver = (await rig.named())[0] ?? ''
  const other = leftOver.replace(/\.\d+\.0\.ndjson/, '.0.0.ndjson')
  await copyFile(join(rig.folder, leftOver), join(rig.folder, other))
  await pool.query('truncate archive_segment, position')
  expect(before.length).toBeGreaterThan(3)
  const store = backwards(rig.store)
  const pieces = { pieceMax: 3 }
  const made = await reindexArchive({ pool, store, at: rig.clock(), limits: pieces })
  expect(made).toEqual({ ...whole, segments: before.length })
  expect(await index()).toEqual(before)
  await rig.send(...Array.from({ length: 20 }, (_, at) => aCall({ userId: `u${at % 4}` })))
  rig.start({ limits })
  await archived()
  await until('what was left over is swept', async () => {
    rig.advance(3_600_000)
    return !(await rig.files()).includes(other)
  })
  expect((await checkArchive(pool, rig.store)).findings).toEqual([])
  for (const partition of [0, 1]) {
    const { end = 0n } = (await rig.source.bounds('calls'))[partition] ?? {}
    const range = { topic: 'calls', partition, from: 0n, until: end } as const
    const held = plain(await readAll(rig.source, range))
    rig.log.truncate('calls', partition, end)
    expect(plain(await readAll(rig.history(), range))).toEqual(held)
  }
})

test('an index that would leave a damaged file out is not made, and the copy of it stays', async () => {
  const before = await index()
  const [first = ''] = await rig.named()
  const copy = await readFile(join(rig.folder, first))
  await writeFile(join(rig.folder, first), 'nothing')
  const made = await reindexArchive({ pool, store: rig.store, at: rig.clock() })
  expect(made).toMatchObject({ isMade: false, leftOut: 1 })
  expect(made.refused.map(({ path }) => path)).toEqual([first])
  expect(await index()).toEqual(before)
  await writeFile(join(rig.folder, first), copy)
  const other = first.replace(/\.\d+\.0\.ndjson/, '.0.0.ndjson')
  await copyFile(join(rig.folder, first), join(rig.folder, other))
  rig.start({ limits })
  await until('what no index names is swept', async () => {
    rig.advance(3_600_000)
    return !(await rig.files()).includes(other)
  })
  expect((await checkArchive(pool, rig.store)).findings).toEqual([])
})

test('a file that is missing is told, by the index or by the gap where there is no index', async () => {
  const named = await rig.named()
  const sibling = (path: string) => named.filter((other) => other.startsWith(path.slice(0, 11)))
  const [first = '', second = '', third = ''] = sibling(named[0] ?? '')
  expect(third).not.toBe('')
  await rm(join(rig.folder, first))
  const work = { pool, store: rig.store, at: rig.clock() }
  const missing = await reindexArchive(work)
  expect(missing).toMatchObject({ isMade: false, leftOut: 1 })
  expect(missing.refused).toEqual([{ path: first, problem: 'it is not there' }])
  await rm(join(rig.folder, second))
  await pool.query('truncate archive_segment, position')
  const start = await reindexArchive(work)
  expect(start).toMatchObject({ isMade: true, segments: named.length - 2 })
  await pool.query('truncate archive_segment, position')
  const other = named.find((path) => !sibling(first).includes(path)) ?? ''
  const [, middle = '', after = ''] = sibling(other)
  expect(after).not.toBe('')
  await rm(join(rig.folder, middle))
  const gap = await reindexArchive(work)
  expect(gap).toMatchObject({ isMade: false, leftOut: 1 })
  expect(gap.refused).toEqual([
    { path: after, problem: expect.stringContaining('before it are in no segment') },
  ])
  expect(await index()).toEqual([])
})

test('a file that cannot be read is left out where that is wanted, and said so', async () => {
  const [first = ''] = await rig.named()
  await writeFile(join(rig.folder, first), 'nothing')
  const work = { pool, store: rig.store, at: rig.clock(), withoutDamaged: true }
  const { isMade, refused, segments } = await reindexArchive(work)
  expect(isMade).toBe(true)
  expect(refused.map(({ path }) => path)).toEqual([first])
  expect(segments).toBe((await rig.files()).length - 1)
  expect(await index()).toHaveLength(segments)
})

test('an archive of any number of files is gone through a piece at a time', async () => {
  const before = await index()
  const name = readPath((await rig.named())[0] ?? '') as SegmentName
  let listed = 0
  let noted = 0
  let mostAtOnce = 0
  // Left over from an owner before, as many as a long archive has segments.
  async function* many(folder: string) {
    if (folder === 'calls/')
      for (let at = 1n; at <= 5_000n; at += 1n) {
        const path = pathOf({ ...name, next: name.next + at, epoch: 0n })
        listed += 1
        mostAtOnce = Math.max(mostAtOnce, listed - noted)
        yield { path, bytes: 1 }
      }
    yield* rig.store.list(folder)
  }
  const watched: Pool = {
    ...pool,
    connect: (use) =>
      pool.connect((connection) =>
        use({
          ...connection,
          query: (text, values) => {
            if (text.startsWith('insert into found_segment')) noted = listed
            return connection.query(text, values)
          },
        }),
      ),
  }
  const store = { ...rig.store, list: many }
  const limits = { pieceMax: 100 }
  const made = await reindexArchive({ pool: watched, store, at: rig.clock(), limits })
  expect(made).toEqual({ ...whole, segments: before.length })
  expect(await index()).toEqual(before)
  expect([listed, mostAtOnce]).toEqual([5_000, 100])
})

test('a reindexing that fails leaves nothing behind, in the index or on its connection', async () => {
  const before = await index()
  const own = openPool({ url, connectionsMax: 1, name: 'reindexes' })
  const work = { pool: own, at: rig.clock(), limits: { pieceMax: 3 } }
  const lost = new Error('the store is lost')
  const losing: Store = {
    ...rig.store,
    list: async function* (folder) {
      for await (const one of rig.store.list(folder)) yield one
      throw Object.assign(lost, { code: 'EIO' })
    },
  }
  await expect(reindexArchive({ ...work, store: losing })).rejects.toBe(lost)
  await own.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
  )
  await own.query(
    'create trigger refuse before insert on archive_segment execute function refuse()',
  )
  await expect(reindexArchive({ ...work, store: rig.store })).rejects.toThrow('refused')
  await own.query('drop function refuse cascade')
  expect(await index()).toEqual(before)
  const { rows } = await own.query(
    `select name from pg_cursors where name <> ''
     union all select relname from pg_class where relnamespace = pg_my_temp_schema()`,
  )
  expect(rows).toEqual([])
  expect(await reindexArchive({ ...work, store: rig.store })).toEqual({
    ...whole,
    segments: before.length,
  })
  await own.close()
})

test('of files that cannot be read the first are told, and all are counted', async () => {
  const named = await rig.named()
  for (const path of named) await writeFile(join(rig.folder, path), 'nothing')
  const limits = { refusedMax: 2 }
  const made = await reindexArchive({ pool, store: rig.store, at: rig.clock(), limits })
  expect(made.refused.map(({ path }) => path)).toEqual(named.slice(0, 2))
  expect(made).toMatchObject({ segments: 0, leftOut: named.length })
})
