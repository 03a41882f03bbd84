// Checking an archive, and making its index anew from the store alone.
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkArchive } from '../../src/archive/inspect.ts'
import { reindexArchive } from '../../src/archive/reindex.ts'
import { cloneDatabase } from '../support/database.ts'
import { aCall, aRig, plain, type Rig, readAll, until } from './rig.ts'
import { isArchived } from './whole.ts'

const { pool } = await cloneDatabase()
const limits = { segmentMsMax: 60_000, segmentBytesMax: 1_200, blockBytesMax: 700 }
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
  const made = await reindexArchive({ pool, store: rig.store, at: rig.clock() })
  expect(made).toEqual({ segments: before.length, entries: 60, refused: [] })
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

test('a file that cannot be read is left out, and said so', async () => {
  const [first = ''] = await rig.named()
  await writeFile(join(rig.folder, first), 'nothing')
  const { refused, segments } = await reindexArchive({ pool, store: rig.store, at: rig.clock() })
  expect(refused.map(({ path }) => path)).toEqual([first])
  expect(segments).toBe((await rig.files()).length - 1)
})
