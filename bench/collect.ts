// collect against a bare Fastify handler that parses the same batches and appends the same bytes.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectLimits } from '../src/collect/limits.ts'
import type { JsonObject } from '../src/domain/message.ts'
import { normalise } from '../src/domain/normalise.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import { aBatch, bareMessage, callsPerBatch } from './collect-calls.ts'
import { openBenchLog } from './collect-log.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.6
const connections = 32

export const run = async (span: Span): Promise<void> => {
  assertSameBytes()
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({ dataDir })
  process.env['BENCH_DATABASE_URL'] = postgres.url
  const children: ChildProcess[] = []
  try {
    const pool = openPool({ url: postgres.url, connectionsMax: 1, name: 'bench' })
    await migrate(pool)
    await pool.close()
    const log = await openBenchLog()
    const contender = async (kind: string): Promise<Run> => {
      const server = start('collect-server.ts', kind)
      children.push(server)
      const { url } = await heard<{ url: string }>(server)
      const load = start('collect-load.ts')
      children.push(load)
      return (seconds) => measure({ server, load, url, ends: log.ends }, seconds)
    }
    const name = 'collect'
    const [bare, product] = [await contender('bare'), await contender('product')]
    await runPairs({ name, budget, unit: 'calls/s', bare, product, ...span })
  } finally {
    for (const child of children) child.kill()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Contender = {
  readonly server: ChildProcess
  readonly load: ChildProcess
  readonly url: string
  readonly ends: () => Promise<number>
}

type Usage = { readonly cpu: NodeJS.CpuUsage; readonly rssBytes: number }
type Sent = { readonly requests: number; readonly p50Ms: number; readonly p99Ms: number }

const measure = async (
  { server, load, url, ends }: Contender,
  seconds: number,
): Promise<Figure> => {
  const before = { ends: await ends(), ...(await ask<Usage>(server, {})), at: performance.now() }
  const sent = await ask<Sent>(load, { url, seconds, connections })
  const tookSeconds = (performance.now() - before.at) / 1_000
  const after = { ends: await ends(), ...(await ask<Usage>(server, {})) }
  const acknowledged = sent.requests * callsPerBatch
  const appended = process.env['BENCH_LOG'] === 'none' ? acknowledged : after.ends - before.ends
  assert.equal(appended, acknowledged, 'the log holds what was acknowledged')
  const cpuMicros = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system
  return {
    rate: appended / tookSeconds,
    notes: {
      'CPU µs/call': cpuMicros / appended,
      'p50 ms': sent.p50Ms,
      'p99 ms': sent.p99Ms,
      'RSS MB': after.rssBytes / 1e6,
    },
  }
}

const start = (file: string, ...args: string[]) => {
  const flags = process.env['BENCH_FLAGS']?.split(' ') ?? []
  return fork(new URL(file, import.meta.url), args, { execArgv: flags })
}

const ask = <T>(child: ChildProcess, question: object): Promise<T> => {
  child.send(question)
  return heard<T>(child)
}

const heard = async <T>(child: ChildProcess): Promise<T> => {
  const heardOrDied = new AbortController()
  const { signal } = heardOrDied
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`)
  })
  const [message] = (await Promise.race([once(child, 'message', { signal }), died])) as [T]
  died.catch(() => undefined)
  heardOrDied.abort()
  const { error } = message as { error?: string }
  if (error) throw new Error(error)
  return message
}

/** The bare handler must earn its name: its bytes are the product's. */
const assertSameBytes = () => {
  const receivedAt = Date.now()
  const { batch, sentAt } = JSON.parse(aBatch(1, new Date(receivedAt))) as {
    batch: JsonObject[]
    sentAt: string
  }
  for (const call of batch) {
    const bare = bareMessage(call, sentAt, receivedAt)
    const product = normalise(call, {
      source: { id: 1, workspaceId: 1, name: '', class: 'server', writeKey: '', enabled: true },
      type: null,
      receivedAt,
      sentAt,
      retryCount: 0,
      context: {},
      integrations: {},
      ip: null,
      userAgent: null,
      messageId: () => '',
      flag: () => undefined,
      limits: collectLimits,
    })
    assert.deepEqual(
      { ...bare, body: String(bare.body) },
      { ...product, body: String('body' in product && product.body) },
    )
  }
}
