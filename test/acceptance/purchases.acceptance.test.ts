// Eighteen months of purchases through the embedded line, synced every three hours of data time: every
// message equals the naive evaluator's, while the process is killed with -9 twenty times.
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openCodecs } from '../../src/log/avro.ts'
import { postgresSource } from '../../src/log/postgres.ts'
import { findPostgres } from '../../src/postgres/embedded.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { removeDataDir } from '../support/process.ts'
import { everyInstant } from './expectation.ts'
import { follow } from './follow.ts'
import { startHooks } from './hooks.ts'
import { sharedSecret, startLine } from './line.ts'
import { readOutbound } from './outbound.ts'
import { firstDay, loadPurchases } from './purchases.ts'

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

test('every sync of eighteen months equals the naive evaluator, through twenty kills', async () => {
  const { name, purchases } = loadPurchases(seed)
  process.stdout.write(`purchases: ${name}, SEED=${seed}\n`)
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-acceptance-'))
  const hooks = await startHooks(sharedSecret)
  const line = await startLine({ dataDir, time: new Date(firstDay) }, hooks.url)
  const pool = openPool({
    url: (await findPostgres(dataDir)) ?? '',
    connectionsMax: 2,
    name: 'acceptance',
  })
  const source = postgresSource({ pool, clock: () => new Date(), partitions: 12 })
  const outbound = readOutbound(source, (await openCodecs({})).outbound)
  const instants = everyInstant()
  const { messages, kills } = await follow({ line, outbound, purchases, instants, kills: 20, seed })
  process.stdout.write(`${instants.length} syncs, ${messages} messages, ${kills} kills\n`)
  expect(kills).toBe(20)
  await expect.poll(() => hooks.bodies.size, { timeout: 120_000, interval: 250 }).toBe(messages)
  expect(hooks.wrong()).toBe(0)
  await source.close()
  await pool.close()
  await line.stop()
  await hooks.close()
  await removeDataDir(dataDir)
}, 1_500_000)
