// import against bare reading of the same lines and appending the same bytes; and what live calls feel of it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { openPool } from '../src/postgres/pool.ts'
import { runLive } from './import-live.ts'
import { nodeFlags } from './node-flags.ts'
import { type Figure, type Run, runPairs, type Span } from './pairs.ts'

const budget = 0.5
const liveSeconds = 50

type Imported = {
  readonly calls: number
  readonly seconds: number
  readonly cpuMicros: number
  readonly rssBytes: number
}

/** Each side in a process of its own, on one log. */
export const run = async (span: Span): Promise<void> => {
  // Too long for a short form, and no less noisy than long.
  if (span.total === undefined) await runLive(liveSeconds)
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const postgres = await startPostgres({ dataDir })
  process.env['BENCH_DATABASE_URL'] = postgres.url
  const children: ChildProcess[] = []
  const start = async (kind: string): Promise<ChildProcess> => {
    const child = fork(new URL('import-side.ts', import.meta.url), [kind], {
      execArgv: [...nodeFlags],
    })
    children.push(child)
    await once(child, 'message')
    return child
  }
  try {
    const pool = openPool({ url: postgres.url, connectionsMax: 1, name: 'bench' })
    await migrate(pool)
    await pool.close()
    const runOf =
      (child: ChildProcess): Run =>
      (seconds) =>
        measure(child, seconds)
    const [bare, product] = [await start('bare'), await start('product')]
    const pair = { bare: runOf(bare), product: runOf(product) }
    await runPairs({ name: 'import', budget, unit: 'calls/s', ...pair, ...span })
  } finally {
    for (const child of children) child.kill()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

const measure = async (child: ChildProcess, seconds: number): Promise<Figure> => {
  child.send({ seconds })
  const [answer] = (await once(child, 'message')) as [Imported & { readonly error?: string }]
  if (answer.error !== undefined) throw new Error(answer.error)
  return {
    rate: answer.calls / answer.seconds,
    notes: {
      'CPU µs/call': answer.cpuMicros / answer.calls,
      'RSS MB': answer.rssBytes / 1e6,
    },
  }
}
