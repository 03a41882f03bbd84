// Brings what the published clients need (their packages, runtimes and a browser) and one Millrace for them all.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { removeDataDir, startProcess } from '../support/process.ts'
import { orStopped } from '../support/stops.ts'

/** Each is `null` where its runtime cannot be had. */
export type Runtimes = {
  /** The Node that runs the drivers, once their packages are installed. */
  readonly node: string | null
  /** By the client's version: a Python that has it. */
  readonly python: Readonly<Record<string, string | null>>
  /** The built driver. */
  readonly go: string | null
  readonly chromium: string | null
}

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    runtimes: Runtimes
    millrace: { readonly collectUrl: string; readonly adminUrl: string; readonly token: string }
  }
}

export const pythonVersions = ['2.3.4', '2.4.0'] as const

const folder = fileURLToPath(new URL('.', import.meta.url))
const cache = join(folder, '.cache')
const installTimeoutMs = 600_000

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  await mkdir(cache, { recursive: true })
  const node = await orNone('packages for Node', installPackages)
  const python: Record<string, string | null> = {}
  for (const version of pythonVersions)
    python[version] = await orNone(`analytics-python ${version}`, () => installPython(version))
  const go = await orNone('analytics-go', buildGo)
  const chromium = node === null ? null : await orNone('Chromium', findChromium)
  project.provide('runtimes', { node, python, go, chromium })
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-clients-'))
  const millrace = await orStopped(
    () => removeDataDir(dataDir),
    () => startProcess({ dataDir, time: 'running' }),
  )
  const { collectUrl, adminUrl, token } = millrace
  project.provide('millrace', { collectUrl, adminUrl, token })
  return async () => {
    try {
      await millrace.stop()
    } finally {
      await removeDataDir(dataDir)
    }
  }
}

/** In CI everything must be there; elsewhere what is missing is skipped, and said so. */
const orNone = async (what: string, bring: () => Promise<string>): Promise<string | null> => {
  try {
    return await bring()
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write(`NO ${what.toUpperCase()}: its tests are skipped. ${String(error)}\n`)
    return null
  }
}

const run = (command: string, args: readonly string[], cwd = folder) =>
  promisify(execFile)(command, args, { cwd, timeout: installTimeoutMs, maxBuffer: 64 << 20 })

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Does something once for these inputs; what it made must still be there. */
const once = async (made: string, inputs: readonly string[], make: () => Promise<unknown>) => {
  const texts = await Promise.all(inputs.map((input) => readFile(join(folder, input), 'utf8')))
  const wanted = createHash('sha256').update(texts.join('\0')).digest('hex')
  const stamp = join(cache, `${inputs[0]?.replaceAll('/', '-')}.made`)
  const done = await readFile(stamp, 'utf8').catch(() => null)
  if (done === wanted && (await exists(made))) return
  await rm(stamp, { force: true })
  await make()
  await writeFile(stamp, wanted)
}

/** The lock leaves out the Redis queue that one client may use: its builds for all platforms cannot be pinned. */
const installPackages = async () => {
  const inputs = ['package-lock.json', 'package.json']
  await once(join(folder, 'node_modules'), inputs, () => run('npm', ['ci', '--ignore-scripts']))
  return process.execPath
}

const installPython = async (version: string) => {
  const home = join(cache, `python-${version}`)
  const python = join(home, 'bin', 'python')
  const requirements = `python/requirements-${version}.txt`
  await once(python, [requirements], async () => {
    await run('python3', ['-m', 'venv', '--clear', home])
    await run(python, ['-m', 'pip', 'install', '-q', '--no-deps', '-r', requirements])
  })
  return python
}

const buildGo = async () => {
  const driver = join(cache, 'drive-go')
  await once(driver, ['go/main.go', 'go/go.mod', 'go/go.sum'], () =>
    run('go', ['build', '-o', driver, '.'], join(folder, 'go')),
  )
  return driver
}

const findChromium = async () => {
  const given = process.env['MILLRACE_TEST_CHROMIUM']
  if (given !== undefined) return given
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  for (const name of ['chromium', 'chromium-browser', 'google-chrome'])
    for (const path of folders) if (await exists(join(path, name))) return join(path, name)
  throw new Error('no chromium on the PATH; MILLRACE_TEST_CHROMIUM may name one')
}
