// A folder of a test file's own: gone after the file, however that ends and wherever it was asked for.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { throwFirst } from './stops.ts'

const made: string[] = []

/** `name` says whose it is, for whoever finds one that a killed run left. */
export const ownFolder = async (name: string): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), `millrace-${name}-`))
  made.push(path)
  return path
}

/** After each file; every project's set-up says so. A hook would not do where a test or another hook asks. */
export const removeFolders = async (): Promise<void> =>
  throwFirst(await Promise.allSettled(made.splice(0).map(remove)))

const remove = async (path: string): Promise<void> => {
  if (await holdsPostgres(path)) {
    const { removeDataDir } = await import('./process.ts')
    await removeDataDir(path)
  }
  // A process that its test left behind may still be writing.
  await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}

const holdsPostgres = async (path: string): Promise<boolean> => {
  const names = await readdir(path).catch(() => [])
  return names.some((name) => name === 'postgres' || name === 'postgres.json')
}
