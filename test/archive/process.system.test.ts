// A whole Millrace that archives, killed with -9 under load: the store has every accepted call once, and the
// commands say so.
import { afterAll, expect, test } from 'vitest'
import { uncompressed } from '../../src/archive/frames.ts'
import { headOf, linesOf } from '../../src/archive/line.ts'
import { readPath } from '../../src/archive/name.ts'
import { openStore } from '../../src/archive/store.ts'
import { cloneDatabase } from '../support/database.ts'
import { type MillraceProcess, processToken, startProcess } from '../support/process.ts'
import { cliAgainst } from '../support/run-cli.ts'
import { seed } from '../support/seed.ts'
import { seeded } from '../support/seeded.ts'
import { aFolder, until } from './rig.ts'

const { pool, url } = await cloneDatabase()
const folder = await aFolder()
const store = openStore({ place: { type: 'folder', path: folder }, credentials: null })
const processes: MillraceProcess[] = []
let now = Date.UTC(2026, 0, 31, 23, 50)

afterAll(async () => {
  for (const millrace of processes) await millrace.kill9()
})

const env = {
  MILLRACE_ARCHIVE: folder,
  MILLRACE_ARCHIVE_SEGMENT_MINUTES: '1',
  MILLRACE_ARCHIVE_COMPRESSION: 'gzip',
  MILLRACE_PARTITIONS: '3',
}

const startAgain = async () => {
  const millrace = await startProcess({ databaseUrl: url, time: new Date(now), env })
  processes.push(millrace)
  return millrace
}

const file = {
  workspaces: [
    { name: 'shop', sources: [{ name: 'web', class: 'server', writeKey: 'wk_archive' }] },
  ],
}

const configure = async (millrace: MillraceProcess) => {
  const response = await fetch(`${millrace.adminUrl}/admin/v1/apply`, {
    method: 'POST',
    headers: { authorization: `Bearer ${millrace.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(file),
  })
  expect(response.status).toBe(200)
}

const send = async (millrace: MillraceProcess, batch: readonly object[]) => {
  const response = await fetch(`${millrace.collectUrl}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('wk_archive:').toString('base64')}` },
    body: JSON.stringify({ batch }),
  }).catch(() => null)
  return response?.status === 200
}

const pass = async (millrace: MillraceProcess) => {
  now += 61_000
  await millrace.setTime(new Date(now))
}

/** By topic, partition and offset: what the files hold. */
const stored = async () => {
  const ids = new Map<string, string>()
  for await (const { path } of store.list('')) {
    const name = readPath(path)
    if (name === null) continue
    const bytes = (await store.get(path)) ?? Buffer.alloc(0)
    for await (const lines of linesOf(uncompressed(name.compression, bytes)))
      for (const line of lines) {
        const { messageId } = JSON.parse(line.toString()) as { messageId: string }
        const place = `${name.topic}/${name.partition}/${headOf(line).offset}`
        // The same offset of a file that is left over says the same.
        expect(ids.get(place) ?? messageId).toBe(messageId)
        ids.set(place, messageId)
      }
  }
  return ids
}

test('killed under load again and again, the archive has every accepted call', async () => {
  const random = seeded(seed)
  let millrace = await startAgain()
  await configure(millrace)
  const accepted: string[] = []
  let made = 0
  for (let kill = 0; kill < 4; kill++) {
    const deadline = performance.now() + 500 + random() * 2_500
    while (performance.now() < deadline) {
      const batch = Array.from({ length: 20 }, () => ({
        type: 'track',
        event: 'Ordered',
        messageId: `m${++made}`,
        userId: `u${made % 40}`,
      }))
      if (await send(millrace, batch)) accepted.push(...batch.map(({ messageId }) => messageId))
      await pass(millrace)
    }
    await millrace.kill9()
    millrace = await startAgain()
  }
  const { rows } = await pool.query<{ entries: number }>(
    `select sum(next_offset)::float8 as entries from log_partition where topic = 'calls'`,
  )
  await until(`all is archived (SEED=${seed})`, async () => {
    await pass(millrace)
    const { rows: left } = await pool.query(
      `select from log_partition l
         left join position p on p.reader = 'archive' and (p.topic, p.partition) = (l.topic, l.partition)
        where l.topic = 'calls' and coalesce(p.next, 0) < l.next_offset`,
    )
    return left.length === 0
  })
  const ids = await stored()
  expect(accepted.length).toBeGreaterThan(100)
  expect(ids.size).toBe(rows[0]?.entries)
  const archived = new Set(ids.values())
  expect(accepted.filter((id) => !archived.has(id))).toEqual([])
  const cli = cliAgainst({ databaseUrl: url, url: millrace.adminUrl })
  const commanding = { MILLRACE_ADMIN_TOKEN: processToken, MILLRACE_ARCHIVE: folder }
  const checked = await cli(['archive', 'check'], commanding)
  expect(checked).toMatchObject({ code: 0, err: '' })
  expect(checked.out).toContain(`${ids.size} entries`)
  expect((await cli(['archive', 'status'], commanding)).lines).toHaveLength(7)
  await millrace.stop()
  const remade = await cli(['archive', 'reindex'], commanding)
  expect(remade).toMatchObject({ code: 0, err: '' })
  expect(remade.out).toContain(`${ids.size} entries`)
}, 900_000)
