// What live calls notice of an import: the acknowledgement's p99 beside one, over the same without.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandRun, runCommand } from '../test/support/command.ts'
import { applyFile } from '../test/support/far-end.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../test/support/process.ts'
import { until } from '../test/support/until.ts'
import { linesOf } from './import-calls.ts'
import { median } from './pairs.ts'

const perSecond = 100
/** Pressure is looked at every second: the pace is found by then. */
const settleMs = 2_000
const pairs = 5
/** More than is imported in all the time there is. */
const lines = 100_000
const linesAtOnce = 10_000
const writeKey = 'wk_bench_import'

/** Whole Millrace in a process, a paced import by the command in another; live calls come from here. */
export const runLive = async (seconds: number): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  const dataDir = join(folder, 'data')
  const path = join(folder, 'calls.ndjson')
  for (let from = 0; from < lines; from += linesAtOnce)
    await writeFile(path, linesOf(from, linesAtOnce), { flag: 'a' })
  const millrace = await startProcess({ dataDir, time: 'running' })
  let command: CommandRun | null = null
  try {
    await applyFile(millrace, {
      workspaces: [{ name: 'shop', sources: [{ name: 'web', class: 'server', writeKey }] }],
    })
    const quantile = (ms: number) => p99Of(millrace, ms)
    // A source is known to the collector a moment after it was made.
    await until(() =>
      post(millrace, 0).then(
        () => true,
        () => false,
      ),
    )
    await quantile(settleMs)
    command = startImport(millrace, path)
    await until(async () => (await importedSoFar(millrace)) > 0, 'the import begins', 60_000)
    command.kill('SIGSTOP')
    const taken: { readonly without: number; readonly beside: number }[] = []
    for (let pair = 0; pair < pairs; pair += 1) {
      const without = await quantile((seconds * 1_000) / (2 * pairs))
      command.kill('SIGCONT')
      await quantile(settleMs)
      const beside = await quantile((seconds * 1_000) / (2 * pairs))
      command.kill('SIGSTOP')
      taken.push({ without, beside })
      console.log(
        `live p99 pair ${pair + 1}: ${without.toFixed(1)} ms without, ${beside.toFixed(1)} ms beside an import; ${await importedSoFar(millrace)} calls imported`,
      )
    }
    const ratio = median(taken.map(({ without, beside }) => beside / without))
    console.log(
      `live p99 beside an import ${ratio.toFixed(3)} times the one without, wanted at most 1.1`,
    )
  } finally {
    command?.kill('SIGKILL')
    await command?.ended
    await millrace.kill9()
    await removeDataDir(dataDir)
    await rm(folder, { recursive: true, force: true })
  }
}

/** One command, stopped and let go on: where it stands is not what is measured. */
const startImport = (millrace: MillraceProcess, path: string): CommandRun => {
  const to = ['--admin-url', millrace.adminUrl, '--admin-token', millrace.token]
  return runCommand(['import', path, '--write-key', writeKey, ...to], {})
}

const importedSoFar = async ({ adminUrl, token }: MillraceProcess): Promise<number> => {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${adminUrl}/admin/v1/imports`, { headers })
  const { imports } = (await response.json()) as { imports: readonly { accepted: number }[] }
  return imports[0]?.accepted ?? 0
}

/** At a constant rate, whatever the answers take: each is timed from when it was due. */
const p99Of = async (millrace: MillraceProcess, ms: number): Promise<number> => {
  const took: number[] = []
  const posts: Promise<void>[] = []
  const beganAt = performance.now()
  for (let n = 0; (n * 1_000) / perSecond < ms; n += 1) {
    const dueAt = beganAt + (n * 1_000) / perSecond
    const waitMs = dueAt - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const posting = post(millrace, n).then(() => void took.push(performance.now() - dueAt))
    posting.catch(() => undefined)
    posts.push(posting)
  }
  await Promise.all(posts)
  return took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? Number.NaN
}

const post = async ({ collectUrl }: MillraceProcess, n: number): Promise<void> => {
  const response = await fetch(`${collectUrl}/v1/track`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ userId: `live-${n}`, event: 'Product Viewed', properties: { n } }),
  })
  if (response.status !== 200) throw new Error(`a live call was answered ${response.status}`)
  await response.arrayBuffer()
}
