// Finds the PHP that pages run on, and starts one Millrace for all of them.
import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { removeDataDir, startProcess } from '../support/process.ts'
import { orStopped } from '../support/stops.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: merging into vitest's type needs an interface
  export interface ProvidedContext {
    /** The program, or `null` where there is none. */
    php: string | null
  }
}

const extensions = ['json', 'curl', 'openssl', 'zlib']

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const php = await findPhp()
  project.provide('php', php)
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-php-'))
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

/** In CI there must be one; elsewhere its tests are skipped, and that is said. */
const findPhp = async (): Promise<string | null> => {
  const program = process.env['MILLRACE_TEST_PHP'] ?? 'php'
  try {
    const { stdout } = await promisify(execFile)(program, ['-m'])
    const had = new Set(stdout.toLowerCase().split('\n'))
    const missing = extensions.filter((extension) => !had.has(extension))
    if (missing.length > 0) throw new Error(`it lacks ${missing.join(', ')}`)
    return program
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write(`NO PHP: its tests are skipped. ${String(error)}\n`)
    return null
  }
}
