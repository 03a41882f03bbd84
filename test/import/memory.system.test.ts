// However long a file is, the command and the server that import it stay as large as after its first part.
import { createWriteStream } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGzip } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { type CommandRun, runCommand } from '../support/command.ts'
import { applyFile } from '../support/far-end.ts'
import { ownFolder } from '../support/folder.ts'
import { type MillraceProcess, removeDataDir, startProcess } from '../support/process.ts'
import { aTrack, ndjson } from './rig.ts'

/** Ten million take an hour or two, and some 30 GB of disk. */
const calls = Number(process.env['IMPORT_CALLS'] ?? 100_000)
/** Compilers, caches and the young heap take their size first, and the heap's swings are of every length. */
const settling = Math.max(20_000, calls / 50)
/** Less than the content of the short form already is. */
const growthMax = 180e6
const rssMax = 512e6
const users = 20_000
const writeKey = 'wk_import_memory'
/** Makes a line some 2 KB. */
const note = 'It came as ordered, and in time. '.repeat(60)

const folder = await ownFolder('import-memory')
const dataDir = join(folder, 'data')
let millrace: MillraceProcess | null = null
let command: CommandRun | null = null

afterAll(async () => {
  command?.kill('SIGKILL')
  await command?.ended
  await millrace?.kill9()
  await removeDataDir(dataDir)
  await rm(folder, { recursive: true, force: true })
})

const linesAtOnce = 1_000

/** Never more of it in memory than a thousand lines. */
function* generated(): Generator<Buffer> {
  for (let from = 0; from < calls; from += linesAtOnce) {
    const amount = Math.min(linesAtOnce, calls - from)
    yield ndjson(
      ...Array.from({ length: amount }, (_, n) =>
        aTrack((from + n) % users, { properties: { n: from + n, note } }),
      ),
    )
  }
}

const rssOf = async (pid: number): Promise<number | null> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return found === undefined ? null : Number(found) * 1_024
}

type Watched = { readonly pid: number; first: number; most: number }

/** The most that each took until the first part was imported, and the most since. */
const watch = (processes: readonly Watched[], imported: () => Promise<number>) => {
  let isOver = false
  const watching = (async () => {
    let isSettled = false
    while (!isOver) {
      isSettled ||= (await imported()) >= settling
      for (const one of processes) {
        const rss = (await rssOf(one.pid)) ?? 0
        one.most = Math.max(one.most, rss)
        if (!isSettled) one.first = Math.max(one.first, rss)
      }
      await sleep(100)
    }
  })()
  return async () => {
    isOver = true
    await watching
  }
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`

test.runIf(process.platform === 'linux')(
  `${calls} calls of a file are imported in memory that does not grow`,
  async () => {
    const started = await startProcess({
      dataDir,
      time: 'running',
      // Readers fill caches of their own, which have their own bounds.
      env: { MILLRACE_ROLES: 'collect,admin' },
    })
    millrace = started
    await applyFile(started, {
      workspaces: [{ name: 'shop', sources: [{ name: 'past', class: 'server', writeKey }] }],
    })
    const path = join(folder, 'calls.ndjson.gz')
    await pipeline(Readable.from(generated()), createGzip({ level: 1 }), createWriteStream(path))
    const imported = async (): Promise<number> => {
      const response = await fetch(`${started.adminUrl}/admin/v1/imports`, {
        headers: { authorization: `Bearer ${started.token}` },
      })
      const { imports } = (await response.json()) as { readonly imports: readonly Shown[] }
      return imports[0]?.accepted ?? 0
    }
    const run = runCommand(
      [
        ...['import', path, '--write-key', writeKey],
        ...['--admin-url', started.adminUrl, '--admin-token', started.token],
      ],
      {},
    )
    command = run
    const server = { pid: started.pid, first: 0, most: 0 }
    const client = { pid: run.pid, first: 0, most: 0 }
    const unwatch = watch([server, client], imported)
    try {
      expect(await run.ended, run.err()).toBe(0)
      expect(await imported()).toBe(calls)
    } finally {
      await unwatch()
    }
    for (const [name, { first, most }] of Object.entries({ server, client })) {
      const told = `${name}: ${megabytes(first)} after ${settling} calls, ${megabytes(most)} at most`
      expect(first, told).toBeGreaterThan(0)
      expect(most - first, told).toBeLessThan(growthMax)
      expect(most, told).toBeLessThan(rssMax)
    }
  },
  600_000 + calls * 20,
)

type Shown = { readonly accepted: number }
