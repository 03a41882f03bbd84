// Runs real PHP programs: pages that use the library, and send.php.
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { ownFolder } from '../support/folder.ts'

export const consumers = ['lib_curl', 'fork_curl', 'socket', 'file'] as const
export type Consumer = (typeof consumers)[number]

export type Order = {
  readonly writeKey: string
  readonly options: Readonly<Record<string, unknown>>
  /** Method and what it is given. */
  readonly calls: readonly (readonly [string, unknown])[]
  /** How the page ends; it just does when absent. */
  readonly end?: 'flush' | 'exit' | 'fatal' | 'throw' | 'memory'
  /** What the web server would tell of the request. */
  readonly server?: Readonly<Record<string, string>>
  readonly [extra: string]: unknown
}

export type HeardError = { readonly code: string; readonly message: string }

export type Ran = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
  readonly tookMs: number
}

export type PageRan = Ran & {
  /** What each call returned. */
  readonly results: readonly unknown[]
  readonly figures: Readonly<Record<string, number>>
  /** What the error handler heard, at the page's end too. */
  readonly heard: readonly HeardError[]
}

/** PHP tells everything it does not like, and nothing of it is hidden. */
const loud = ['error_reporting=-1', 'display_errors=stderr', 'log_errors=0', 'html_errors=0']
const programMs = 300_000
const folder = fileURLToPath(new URL('.', import.meta.url))

export const pagePath = (name: string) => join(folder, 'pages', `${name}.php`)
export const sendPath = fileURLToPath(new URL('../../clients/php/send.php', import.meta.url))

/** Where there is no PHP its tests are skipped; the setup has said so. */
export const phpTest = test.skipIf(inject('php') === null)

export type Program = {
  readonly script: string
  readonly args?: readonly string[]
  readonly settings?: readonly string[]
  /** Of PHP itself. */
  readonly flags?: readonly string[]
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts it, and gives its process id with what becomes of it. */
export const startPhp = (program: Program) => {
  const { script, args = [], settings = [], flags = [], input = '', env = {} } = program
  const startedAt = performance.now()
  const child = spawn(
    inject('php') ?? 'php',
    [...flags, ...[...loud, ...settings].flatMap((setting) => ['-d', setting]), script, ...args],
    {
      // Proxies and authorities of this machine have no part in it.
      env: { PATH: process.env['PATH'] ?? '', TMPDIR: tmpdir(), ...env },
      timeout: programMs,
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  )
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  // A program that does not read its input closes the pipe.
  child.stdin.on('error', () => undefined).end(input)
  const done = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) =>
      resolve({ code, signal, out, err, tookMs: performance.now() - startedAt }),
    )
  })
  return { pid: child.pid ?? Number.NaN, kill9: () => child.kill('SIGKILL'), done }
}

export const runPhp = (program: Program): Promise<Ran> => startPhp(program).done

/** Runs a page; unless it is made to fail, PHP must have nothing to complain of. */
export const runPage = async (order: Order, program: Partial<Program> = {}): Promise<PageRan> => {
  const { done } = await startPage(order, program)
  return done
}

export const startPage = async (order: Order, program: Partial<Program> = {}) => {
  const folder = await tempFolder()
  const errorsFile = join(folder, 'errors')
  const script = program.script ?? pagePath('calls')
  const input = JSON.stringify({ ...order, errorsFile })
  // Spools are kept there, unless pages are to share one.
  const env = { TMPDIR: folder, ...program.env }
  const { pid, done } = startPhp({ ...program, script, input, env })
  const finished = async (): Promise<PageRan> => {
    const ran = await done
    const heard = await readFile(errorsFile, 'utf8').catch(() => '')
    if (!['fatal', 'throw', 'memory'].includes(order.end ?? '')) expectQuiet(ran)
    const told = ran.out.split('\n').findLast((line) => line.startsWith('{"results"')) ?? '{}'
    return {
      ...ran,
      ...{ results: [], figures: {}, ...(JSON.parse(told) as object) },
      heard: heard.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)])),
    }
  }
  return { pid, done: finished() }
}

/** Ended well, and without a warning, a notice or a deprecation anywhere. */
export const expectQuiet = (ran: Ran): void => {
  expect(complaintsIn(ran)).toEqual([])
  expect([ran.code, ran.signal]).toEqual([0, null])
}

export const complaintsIn = ({ out, err }: Ran): readonly string[] =>
  `${out}\n${err}`
    .split('\n')
    // What the library logs with debug on is no complaint of PHP.
    .filter((line) => !line.includes('[millrace] '))
    .filter((line) => /\b(warning|notice|deprecated|fatal error|parse error)\b/i.test(line))

/** Gone when its test file is. */
export const tempFolder = (): Promise<string> => ownFolder('page')
