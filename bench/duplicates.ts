// duplicates against the least that remembers a call: a Map of ids in memory and an insert of their packed digests.
import { randomFillSync } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openDuplicates } from '../src/duplicate/duplicates.ts'
import type { Judged } from '../src/duplicate/entry.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.4
/** As many as the projector writes in one transaction. */
const batch = 5_000
const hourMs = 3_600_000
const start = Date.UTC(2026, 0, 1)
const bytesMax = 512_000_000
const callsShort = 100_000
const callsLong = 1_000_000
/** Of what is sent, one in so many was sent before. */
const retriedOneIn = 50

export const run = async (span: Span): Promise<void> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({ dataDir })
  try {
    const pool = openPool({ url: postgres.url, connectionsMax: 2, name: 'bench' })
    await migrate(pool)
    await pool.query(
      'create table bare_digest (partition int not null, base bigint not null, digests bytea not null)',
    )
    await printSizes(pool, span.total === undefined ? callsLong : callsShort)
    const [bare, product] = [contender(pool, openBare), contender(pool, openProduct)]
    await runPairs({ name: 'duplicates', budget, unit: 'calls/s', bare, product, ...span })
    await pool.close()
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Judges a batch and remembers it durably; how many of it were duplicates. */
type Memory = (entries: readonly Judged[]) => Promise<number>

let partitions = 0

const openProduct = async (pool: Pool): Promise<Memory> => {
  const key = { reader: 'project', topic: 'calls', partition: partitions++ }
  const duplicates = await openDuplicates({ sql: pool, bytesMax, ...key })
  return async (entries) => {
    const verdict = await duplicates.judge(entries)
    await pool.transaction((tx) => verdict.save(tx))
    verdict.accept()
    return verdict.duplicate.filter(Boolean).length
  }
}

const openBare = async (pool: Pool): Promise<Memory> => {
  const partition = partitions++
  const seen = new Map<string, number>()
  return async (entries) => {
    let duplicates = 0
    for (const { digest, receivedAt } of entries) {
      const id = Buffer.from(digest.buffer, digest.byteOffset, 16).toString('latin1')
      if (seen.has(id)) duplicates += 1
      seen.set(id, receivedAt)
    }
    const digests = Buffer.concat(entries.map(({ digest }) => digest))
    await pool.transaction((tx) =>
      tx.query('insert into bare_digest (partition, base, digests) values ($1, $2, $3)', [
        partition,
        entries[0]?.offset,
        digests,
      ]),
    )
    return duplicates
  }
}

/** Calls as they come: new ids, and now and then one of the last batch again. */
const openCalls = () => {
  let offset = 0n
  let last: readonly Judged[] = []
  return (count: number, receivedAt: number): readonly Judged[] => {
    const digests = randomFillSync(Buffer.allocUnsafe(count * 16))
    last = Array.from({ length: count }, (_, at) => {
      const again = at % retriedOneIn === 0 ? last[at]?.digest : undefined
      offset += 1n
      return { offset, digest: again ?? digests.subarray(at * 16, at * 16 + 16), receivedAt }
    })
    return last
  }
}

const contender =
  (pool: Pool, open: (pool: Pool) => Promise<Memory>): Run =>
  async (seconds): Promise<Figure> => {
    const memory = await open(pool)
    const calls = openCalls()
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    let judged = 0
    let duplicates = 0
    while (performance.now() - startedAt < seconds * 1_000) {
      duplicates += await memory(calls(batch, start + judged))
      judged += batch
    }
    const tookSeconds = (performance.now() - startedAt) / 1_000
    if (duplicates !== (judged / batch - 1) * (batch / retriedOneIn))
      throw new Error(`${duplicates} duplicates of ${judged} calls`)
    const { user, system } = process.cpuUsage(cpu)
    return { rate: judged / tookSeconds, notes: { 'CPU µs/call': (user + system) / judged } }
  }

const diskBytes = async (pool: Pool, tables: readonly string[]) => {
  const { rows } = await pool.query<{ bytes: bigint }>(
    'select sum(pg_total_relation_size(name::regclass))::bigint as bytes from unnest($1::text[]) as name',
    [tables],
  )
  return Number(rows[0]?.bytes)
}

const ownTables = ['duplicate_chunk', 'duplicate_segment', 'duplicate_page']

/** What an open hour takes, what the same hour takes once sealed, and what is on disk for each. */
const printSizes = async (pool: Pool, count: number) => {
  const key = { reader: 'project', topic: 'calls', partition: partitions++ }
  const duplicates = await openDuplicates({ sql: pool, bytesMax, ...key })
  const calls = openCalls()
  const take = async (entries: readonly Judged[]) => {
    const verdict = await duplicates.judge(entries)
    await verdict.save(pool)
    verdict.accept()
  }
  for (let at = 0; at < count; at += batch) await take(calls(batch, start + at))
  const open = { memory: duplicates.bytes(), disk: await diskBytes(pool, ownTables) }
  // Sealing waits for calls of a later hour.
  await take(calls(1, start + 3 * hourMs))
  const sealedAt = performance.now()
  await take(calls(1, start + 3 * hourMs))
  const sealMs = performance.now() - sealedAt
  await pool.query('vacuum full duplicate_chunk')
  const sealed = { memory: duplicates.bytes(), disk: await diskBytes(pool, ownTables) }
  const megabytes = (bytes: number) => `${(bytes / count).toFixed(1)} MB`
  console.log(`a million calls, from ${count.toLocaleString('en-US')}:`)
  console.log(`  open hour: ${megabytes(open.memory)} of memory, ${megabytes(open.disk)} on disk`)
  console.log(
    `  sealed hour: ${megabytes(sealed.memory)} of memory, ${megabytes(sealed.disk)} on disk; sealing took ${sealMs.toFixed(0)} ms`,
  )
  const bareMemory = heapOfMap(count)
  const bare = await openBare(pool)
  const bareCalls = openCalls()
  for (let at = 0; at < count; at += batch) await bare(bareCalls(batch, start + at))
  const bareDisk = await diskBytes(pool, ['bare_digest'])
  console.log(`  bare: ${megabytes(bareMemory)} of memory, ${megabytes(bareDisk)} on disk`)
  await pool.query('truncate bare_digest')
}

/** Of strings and numbers that nothing but the Map holds. */
const heapOfMap = (count: number) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const seen = new Map<string, number>()
  for (let at = 0; at < count; at += 1)
    seen.set(randomFillSync(Buffer.allocUnsafe(16)).toString('latin1'), start + at)
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  // Kept alive until it was weighed.
  if (seen.size !== count) throw new Error('ids collided')
  return bytes
}
