// collect against a bare Fastify handler that parses the same requests and appends the same bytes, in four forms.
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
import { aSource } from '../test/support/configuration.ts'
import { aBatch, aSingle, bareMessage, type Form, forms } from './collect-calls.ts'
import { openBenchLog } from './collect-log.ts'
import { nodeFlags } from './node-flags.ts'
import { type Figure, partOf, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.6
/** Enough to keep a server busy while the log makes a group commit durable. */
const connectionsOf = { batches: 32, single: 128 }

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
    const contender = async (kind: string): Promise<(form: Form) => Run> => {
      const server = start('collect-server.ts', kind)
      children.push(server)
      const { url } = await heard<{ url: string }>(server)
      const load = start('collect-load.ts')
      children.push(load)
      return (form) => (seconds) => measure({ server, load, url, form, ends: log.ends }, seconds)
    }
    const [bare, product] = [await contender('bare'), await contender('product')]
    const names = Object.keys(forms) as Form[]
    const part = partOf(span, names.length)
    const ratios: number[] = []
    for (const form of names) {
      const name = `collect ${form}`
      const pair = { bare: bare(form), product: product(form) }
      ratios.push(await runPairs({ name, budget, unit: 'calls/s', ...pair, ...part }))
    }
    console.log(`collect ratio ${Math.min(...ratios).toFixed(3)} budget ${budget}`)
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
  readonly form: Form
  readonly ends: () => Promise<number>
}

type Usage = { readonly cpu: NodeJS.CpuUsage; readonly rssBytes: number }
type Sent = { readonly requests: number; readonly p50Ms: number; readonly p99Ms: number }

const measure = async (
  { server, load, url, form, ends }: Contender,
  seconds: number,
): Promise<Figure> => {
  const before = { ends: await ends(), ...(await ask<Usage>(server, {})), at: performance.now() }
  const connections = forms[form].calls === 1 ? connectionsOf.single : connectionsOf.batches
  const sent = await ask<Sent>(load, { url, seconds, connections, form })
  const tookSeconds = (performance.now() - before.at) / 1_000
  const after = { ends: await ends(), ...(await ask<Usage>(server, {})) }
  const acknowledged = sent.requests * forms[form].calls
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
  return fork(new URL(file, import.meta.url), args, { execArgv: [...nodeFlags] })
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
  const now = new Date(receivedAt)
  const { batch, sentAt } = JSON.parse(aBatch(1, now)) as { batch: JsonObject[]; sentAt: string }
  for (const call of batch) assertSame(call, { sentAt, receivedAt, isSingle: false })
  const single = JSON.parse(aSingle(1, now)) as JsonObject & { sentAt: string }
  assertSame(single, { sentAt: single.sentAt, receivedAt, isSingle: true })
}

type Sending = { readonly sentAt: string; readonly receivedAt: number; readonly isSingle: boolean }

const assertSame = (call: JsonObject, { sentAt, receivedAt, isSingle }: Sending) => {
  const bare = bareMessage(call, sentAt, receivedAt)
  const product = normalise(call, {
    source: aSource(),
    type: isSingle ? 'track' : null,
    receivedAt,
    sentAt: isSingle ? undefined : sentAt,
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
