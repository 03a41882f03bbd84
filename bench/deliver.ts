// deliver against a bare undici loop: (a) an instant receiver, (b) fifty that take 50 ms each. Both are counted
// at the receivers while they run steadily: each run leads in before it is counted, on either side alike.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { logKey } from '../src/domain/message.ts'
import { openCodecs } from '../src/log/avro.ts'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import { callsFrom, callsPerBatch } from './deliver-calls.ts'
import { openDeliverLog } from './deliver-log.ts'
import { demand, megabytes, rssMaxBytes } from './deliver-stand.ts'
import { nodeFlags } from './node-flags.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.6
const slowBudget = 0.9
const slowDestinations = 50
const slowConcurrency = 512
const appendMax = 500
/** Connections are opened, partitions gained and lanes filled in this time, which nobody counts. */
const leadSeconds = 1
/** Once before the pairs: compilers need tens of thousands of posts. */
const warmUpSeconds = 3
/** More than the product can send in a second, so that its log never runs dry: of 512 at a time in 50 ms, and of instant ones. */
const slowCallsPerSecond = 11_000
const callsPerSecond = 30_000

export const run = async (span: Span): Promise<void> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({ dataDir })
  const children: ChildProcess[] = []
  try {
    const half = halfOf(span)
    await openDatabase(postgres.url, 'slow')
    const slowBench = await openBench(children)
    const slow = await slowBench.scene({
      destinations: slowDestinations,
      delayMs: 50,
      perSecond: slowCallsPerSecond,
    })
    const unit = 'posts/s'
    await runPairs({
      name: 'deliver 50 ms',
      budget: slowBudget,
      unit,
      bare: slow.bare(slowConcurrency),
      product: slow.product(slowConcurrency),
      warmUpSeconds,
      ...half,
    })
    await openDatabase(postgres.url, 'instant')
    const bench = await openBench(children)
    const instant = await bench.scene({
      destinations: 1,
      delayMs: 0,
      perSecond: callsPerSecond,
    })
    const concurrency = await peakOf(instant.bare)
    const [bare, product] = [instant.bare(concurrency), instant.product(concurrency)]
    await runPairs({ name: 'deliver', budget, unit, bare, product, warmUpSeconds, ...half })
    const rssMostBytes = Math.max(slowBench.rssMostBytes(), bench.rssMostBytes())
    if (span.total === undefined)
      demand(rssMostBytes < rssMaxBytes, `the sender took ${megabytes(rssMostBytes)}`)
  } finally {
    const ended = children.map((child) => once(child, 'exit'))
    for (const child of children) child.disconnect()
    await Promise.all(ended)
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Runs of half the time; with little of it few pairs, as each of them leads in. */
const halfOf = ({ total, seconds, pairs }: Span) => {
  if (total === undefined) return { seconds, pairs }
  const fitting = Math.min(pairs, Math.max(2, Math.floor(total / 16)))
  return { pairs: fitting, seconds: Math.max(1, total / (4 * fitting) - leadSeconds) }
}

/** A log for each scene: what the one before left would be read first, and posted by nobody. */
const openDatabase = async (server: string, name: string): Promise<void> => {
  const admin = openPool({ url: server, connectionsMax: 1, name: 'bench' })
  await admin.query(`create database bench_${name}`)
  await admin.close()
  // Its host is a socket's, which a URL cannot say.
  const url = server.replace(/\/[^/?]*(?=\?|$)/, `/bench_${name}`)
  process.env['BENCH_DATABASE_URL'] = url
  const pool = openPool({ url, connectionsMax: 1, name: 'bench' })
  await migrate(pool)
  await pool.close()
}

/** The concurrency at which the bare loop is fastest. */
const peakOf = async (bare: (concurrency: number) => Run): Promise<number> => {
  let peak = { concurrency: 0, rate: 0 }
  for (const concurrency of [32, 64, 128, 256]) {
    const { rate } = await bare(concurrency)(leadSeconds / 2)
    console.log(`bare at concurrency ${concurrency}: ${Math.round(rate)} posts/s`)
    if (rate > peak.rate) peak = { concurrency, rate }
  }
  return peak.concurrency
}

type Scene = {
  readonly destinations: number
  readonly delayMs: number
  readonly perSecond: number
}

const openBench = async (children: ChildProcess[]) => {
  const senders = {
    bare: await sender(children, 'bare'),
    product: await sender(children, 'product'),
  }
  const fill = await openFill()
  let rssMostBytes = 0
  const scene = async ({ destinations, delayMs, perSecond }: Scene) => {
    const receiver = start(children, 'deliver-receiver.ts', [String(destinations), String(delayMs)])
    const { urls } = await heard<{ urls: string[] }>(receiver)
    const runner =
      (kind: 'bare' | 'product') =>
      (concurrency: number): Run =>
      async (seconds) => {
        // More than can be sent, so that the log never runs dry; what is left serves the next run.
        const sent = () => ask<{ requests: number }>(receiver, {})
        const wanted = Math.ceil((seconds + leadSeconds) * perSecond)
        if (kind === 'product') await fill.ensure(wanted, destinations)
        const before = await sent()
        const figure = await measure({ child: senders[kind], urls, concurrency, sent }, seconds)
        if (kind === 'product') rssMostBytes = figure.rssBytes
        if (kind === 'product') fill.spend((await sent()).requests - before.requests)
        return figure
      }
    return { bare: runner('bare'), product: runner('product') }
  }
  return { scene, rssMostBytes: () => rssMostBytes }
}

const sender = async (children: ChildProcess[], kind: string): Promise<ChildProcess> => {
  const child = start(children, 'deliver-sender.ts', [kind])
  await heard(child)
  return child
}

/** Keeps calls waiting in the log, appended before a run's time is taken. */
const openFill = async () => {
  const { appender } = await openDeliverLog()
  const { call: codec } = await openCodecs({})
  let seed = 1_000
  let waiting = 0
  let destinationsNow = 0
  return {
    ensure: async (wanted: number, destinations: number) => {
      if (destinations !== destinationsNow) waiting = 0
      destinationsNow = destinations
      while (waiting < wanted) {
        const calls = callsFrom(seed, appendMax, destinations)
        seed += Math.ceil(appendMax / callsPerBatch)
        const entries = calls.map((call) => ({ key: logKey(call), value: codec.encode(call) }))
        await appender.append('calls', entries)
        waiting += entries.length
      }
    },
    spend: (requests: number) => {
      waiting = Math.max(0, waiting - requests)
    },
  }
}

type Usage = { readonly cpu: NodeJS.CpuUsage; readonly rssBytes: number }

type Measured = {
  readonly child: ChildProcess
  readonly urls: readonly string[]
  readonly concurrency: number
  readonly sent: () => Promise<{ readonly requests: number }>
}

/** Counted at the receivers, between two instants of a steady run; so is the CPU. */
const measure = async (
  measured: Measured,
  seconds: number,
): Promise<Figure & { readonly rssBytes: number }> => {
  const { child, urls, concurrency, sent } = measured
  const idle = await sent()
  await ask<Usage>(child, { type: 'start', urls, concurrency })
  while ((await sent()).requests === idle.requests) await sleep(5)
  await sleep(leadSeconds * 1_000)
  const before = await ask<Usage>(child, { type: 'usage' })
  const first = await sent()
  const began = performance.now()
  await sleep(seconds * 1_000)
  const last = await sent()
  const tookSeconds = (performance.now() - began) / 1_000
  const after = await ask<Usage>(child, { type: 'usage' })
  const { rssBytes } = await ask<Usage>(child, { type: 'stop' })
  const posts = last.requests - first.requests
  const micros = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system
  const notes = { 'CPU µs/post': micros / posts, 'RSS MB': rssBytes / 1_048_576 }
  return { rate: posts / tookSeconds, notes, rssBytes }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const start = (children: ChildProcess[], file: string, args: readonly string[]) => {
  const child = fork(new URL(file, import.meta.url), args, { execArgv: [...nodeFlags] })
  children.push(child)
  return child
}

const ask = <T>(child: ChildProcess, question: object): Promise<T> => {
  child.send(question)
  return heard<T>(child)
}

const heard = async <T>(child: ChildProcess): Promise<T> => {
  const { signal, abort } = abortable()
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`)
  })
  died.catch(() => undefined)
  const [message] = (await Promise.race([once(child, 'message', { signal }), died])) as [T]
  abort()
  if ((message as { error?: string }).error) throw new Error((message as { error: string }).error)
  return message
}

const abortable = () => {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}
