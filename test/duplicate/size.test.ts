import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { openDuplicates } from '../../src/duplicate/duplicates.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

const hour = 3_600_000
const start = Date.parse('2026-03-01T00:00:00Z')
const ids = 100_000
const batch = 1_000

const diskBytes = async () => {
  const { rows } = await pool.query<{ bytes: bigint }>(
    `select sum(pg_total_relation_size(name::regclass))::bigint as bytes
       from unnest(array['duplicate_chunk', 'duplicate_segment', 'duplicate_page']) as name`,
  )
  return Number(rows[0]?.bytes)
}

test('a million ids take the memory and disk that were planned for', async () => {
  const place = { reader: 'project', topic: 'calls', partition: 0 }
  const duplicates = await openDuplicates({ sql: pool, bytesMax: 64_000_000, ...place })
  const judgeAt = async (from: number, count: number, receivedAt: number) => {
    const entries = Array.from({ length: count }, (_, at) => ({
      offset: BigInt(from + at),
      digest: randomBytes(16),
      receivedAt,
    }))
    const before = performance.now()
    const verdict = await duplicates.judge(entries)
    const judgedMs = performance.now() - before
    await verdict.save(pool)
    verdict.accept()
    return judgedMs
  }
  for (let at = 0; at < ids; at += batch) await judgeAt(at, batch, start + at)
  const open = duplicates.bytes()
  // One id of another hour: the first is sealed when the next is judged.
  await judgeAt(ids, 1, start + 3 * hour)
  const sealMs = await judgeAt(ids + 1, 1, start + 3 * hour)
  const sealed = duplicates.bytes()
  // A day of sealed hours behind it is what a reader has in its long run.
  let next = ids + 2
  for (let hours = 4; hours < 25; hours += 1) {
    await judgeAt(next, batch, start + hours * hour)
    next += batch
  }
  const full = 5_000
  let judgeMs = 0
  for (let at = 0; at < 10; at += 1) {
    judgeMs += await judgeAt(next, full, start + 25 * hour + at)
    next += full
  }
  await pool.query('vacuum full duplicate_chunk')
  const disk = await diskBytes()
  const perMillion = (bytes: number, count: number) => Math.round((bytes / count) * 10) / 10
  process.stdout.write(
    `duplicates, MB per million ids: open hour ${perMillion(open, ids)}, sealed hour ${perMillion(sealed, ids)}, disk ${perMillion(disk, next)}; sealing ${ids} ids ${Math.round(sealMs)} ms; judging ${((judgeMs * 1_000) / (10 * full)).toFixed(2)} µs an id behind a day of sealed hours\n`,
  )
  expect(open / ids).toBeLessThan(60)
  expect(sealed / ids).toBeLessThan(2.2)
  expect(disk / next).toBeLessThan(40)
})
