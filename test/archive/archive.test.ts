// The archive stage: segments without gap or overlap, whatever is away or lost meanwhile.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openStore } from '../../src/archive/store.ts'
import { gainPosition, movePositions } from '../../src/postgres/position.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { aCall, aFolder, aRig, day, type Rig, start, until } from './rig.ts'
import { expectSame, expectWhole, isArchived, segmentsOf } from './whole.ts'

const { pool } = await cloneDatabase()
let rig: Rig

afterEach(() => rig.stop())

const calls = (count: number, over: Parameters<typeof aCall>[0] = {}) =>
  Array.from({ length: count }, (_, at) => aCall({ userId: `u${at % 7}`, ...over }))

const tiny = { blockBytesMax: 600, segmentBytesMax: 1_000, segmentMsMax: 60_000 }

test('a segment is written when it is full, and the rest when its time has come', async () => {
  rig = await aRig(pool)
  rig.start({ limits: { ...tiny, segmentBytesMax: 3_000 } })
  await rig.send(...calls(200))
  await until('some segments are full', async () => (await segmentsOf(rig)).length > 3)
  rig.advance(60_000)
  await rig.archived()
  await expectWhole(rig)
  expect((await segmentsOf(rig)).reduce((sum, { entries }) => sum + entries, 0)).toBe(200)
  expect(await rig.files()).toEqual(await rig.named())
  await expectSame(rig)
})

test('a segment that is neither full nor old is not written, and the log is read again by the next', async () => {
  rig = await aRig(pool)
  const first = rig.start()
  await rig.send(...calls(20))
  await until('it has gained its partitions', async () => {
    const { rows } = await pool.query(`select from position where reader = 'archive'`)
    return rows.length === 4
  })
  rig.advance(3_599_000)
  await first.stop()
  expect(await segmentsOf(rig)).toEqual([])
  rig.start()
  await until('the log is read again', async () => {
    rig.advance(3_600_000)
    return (await segmentsOf(rig)).length > 0
  })
  await rig.archived()
  await expectWhole(rig)
  await expectSame(rig)
})

test('when all that is open is too much, the largest segment is written', async () => {
  rig = await aRig(pool)
  rig.start({ limits: { openBytesMax: 2_000 } })
  await rig.send(...calls(60))
  await until('some are written', async () => (await segmentsOf(rig)).length > 0)
  const written = (await segmentsOf(rig)).reduce((sum, { entries }) => sum + entries, 0)
  expect(written).toBeGreaterThan(0)
})

test('offsets that hold nothing are in a segment like all others', async () => {
  rig = await aRig(pool)
  for (const call of calls(30)) {
    await rig.send(call)
    rig.log.hole('calls', 0)
    rig.log.hole('calls', 1)
  }
  await rig.send(...calls(10))
  rig.start({ limits: tiny })
  await until('it is archived', async () => {
    rig.advance(60_000)
    await new Promise((resolve) => setTimeout(resolve, 20))
    return (await segmentsOf(rig)).reduce((sum, { entries }) => sum + entries, 0) === 40
  })
  await expectSame(rig)
})

test('whoever lost a partition writes nothing of it any more', async () => {
  rig = await aRig(pool)
  const first = rig.start({ limits: tiny })
  await rig.send(...calls(10))
  rig.advance(60_000)
  await rig.archived()
  const before = await segmentsOf(rig)
  // Somebody else has taken over, and the log has not told this one yet.
  await pool.query(`update position set epoch = epoch + 1 where reader = 'archive'`)
  await rig.send(...calls(10))
  await until('it has tried', async () => {
    rig.advance(60_000)
    return (await rig.files()).length > before.length
  })
  expect(await segmentsOf(rig)).toEqual(before)
  await first.stop()
  rig.start({ limits: tiny })
  await until('the next one has archived all', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  await expectWhole(rig)
})

test('a store that fails for a while loses nothing, and what went wrong is told until it is made good', async () => {
  rig = await aRig(pool)
  let isAway = true
  const store = { ...rig.store }
  const put: typeof store.put = (...given) =>
    isAway ? Promise.reject(new Error('the store is away')) : rig.store.put(...given)
  rig.start({ store: { ...store, put }, limits: tiny })
  await rig.send(...calls(50))
  rig.advance(60_000)
  const troubles = async () => {
    const { rows } = await pool.query<{ trouble: string }>(
      'select trouble from archive_partition where trouble is not null',
    )
    return rows.map(({ trouble }) => trouble)
  }
  await until('it is told', async () => (await troubles()).length > 0)
  expect(new Set(await troubles())).toEqual(new Set(['the store is away']))
  isAway = false
  await until('all is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  expect(await troubles()).toEqual([])
  await expectWhole(rig)
  await expectSame(rig)
})

test('what the log let go of before it was archived is told, and the rest is archived', async () => {
  rig = await aRig(pool)
  const first = rig.start({ limits: tiny })
  await rig.send(...calls(20))
  rig.advance(60_000)
  await rig.archived()
  await first.stop()
  await rig.send(...calls(20))
  const bounds = await rig.source.bounds('calls')
  const gone = (bounds[0]?.end ?? 0n) - 2n
  rig.log.truncate('calls', 0, gone)
  rig.start({ limits: tiny })
  const { rows } = await waitForTrouble()
  expect(rows[0]?.trouble).toContain('let go of offsets')
  await until('the rest is archived', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  rig.log.truncate('calls', 0, bounds[0]?.end ?? 0n)
  expect((await rig.history().bounds('calls'))[0]?.start).toBe(gone)
})

test('the archive of another log is told apart by where it ends', async () => {
  rig = await aRig(pool)
  const { epoch } = await gainPosition(pool, { reader: 'archive', topic: 'calls', partition: 0 })
  await movePositions(pool, [
    { reader: 'archive', topic: 'calls', partition: 0, epoch, next: 1_000n },
  ])
  rig.start({ limits: tiny })
  const { rows } = await waitForTrouble()
  expect(rows[0]?.trouble).toContain('give a new log another MILLRACE_ARCHIVE')
})

const waitForTrouble = async () => {
  for (;;) {
    const found = await pool.query<{ trouble: string }>(
      'select trouble from archive_partition where trouble is not null',
    )
    if (found.rows.length > 0) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('segments past their days go from the front, files that others put there stay', async () => {
  rig = await aRig(pool)
  await mkdir(join(rig.folder, 'calls', '0000'), { recursive: true })
  await writeFile(join(rig.folder, 'calls', '0000', 'README'), 'by hand')
  const limits = { ...tiny, keepMs: 30 * day }
  rig.start({ limits })
  await rig.send(...calls(20, { receivedAt: start }))
  rig.advance(60_000)
  await rig.archived()
  rig.advance(20 * day)
  await rig.send(...calls(20, { receivedAt: start + 20 * day }))
  await until('those are archived, too', async () => {
    rig.advance(60_000)
    return isArchived(rig)
  })
  const before = await segmentsOf(rig)
  rig.advance(11 * day)
  await until('the old ones are gone', async () => {
    const rows = await segmentsOf(rig)
    return rows.length > 0 && rows.length < before.length && rows.every(({ first }) => first > 0n)
  })
  await until('their files, too', async () => {
    const files = (await rig.files()).filter((path) => !path.endsWith('README'))
    return JSON.stringify(files) === JSON.stringify(await rig.named())
  })
  expect(await rig.files()).toContain('calls/0000/README')
})

test('a segment that is written while files are looked for is not taken for missing', async () => {
  const folder = openStore({ place: { type: 'folder', path: await aFolder() }, credentials: null })
  let whileListing = async (): Promise<void> => undefined
  const own = await aRig(pool, {
    ...folder,
    list: async function* (name) {
      const all = []
      for await (const each of folder.list(name)) all.push(each)
      await whileListing()
      yield* all
    },
  })
  rig = own
  let sent = false
  whileListing = async () => {
    if (!sent) await own.send(...calls(200))
    sent = true
    await until('a segment is written', async () => (await segmentsOf(own)).length > 3)
  }
  let kept = 0
  const newest = async () => {
    kept += 1
    return 0n
  }
  own.start({
    limits: { ...tiny, segmentBytesMax: 3_000 },
    erasures: { newest, load: async () => ({ upTo: 0n, isErased: () => false }) },
  })
  const troubles = async () =>
    (await pool.query('select trouble from archive_partition where trouble is not null')).rows
  await until(
    'all partitions were looked after',
    async () => kept >= 4 || (await troubles()).length > 0,
  )
  expect(await troubles()).toEqual([])
})

test('partitions that are gained while Postgres is away wait for it', async () => {
  rig = await aRig(pool)
  await rig.send(...calls(20))
  let isClosed = true
  let refused = 0
  const query: Pool['query'] = async (text, values) => {
    if (!isClosed) return pool.query(text, values)
    refused += text.includes('into position') ? 1 : 0
    throw Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
  }
  rig.start({ pool: { ...pool, query }, limits: tiny })
  await until('it was refused many times', async () => refused > 20)
  isClosed = false
  rig.advance(60_000)
  await rig.archived()
  await expectSame(rig)
})
