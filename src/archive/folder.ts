// Segments in a folder. A file appears whole, under its name, after its bytes and its name are on the disk.
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { Fault } from '../fault.ts'
import type { Store, Stored } from './store.ts'

/** What is being written; a writer that was killed leaves it. */
const partial = '.tmp'

export const openFolder = (path: string): Store => {
  const root = resolve(path)
  const at = (name: string) => join(root, name)
  return {
    put: async (name, bytes) => {
      const target = at(name)
      const folder = dirname(target)
      await makeFolder(folder)
      const file = await open(target + partial, 'w', 0o640)
      try {
        await file.writeFile(bytes)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(target + partial, target)
      await syncFolder(folder)
    },
    get: async (name) => {
      try {
        return await orNull(readFile(at(name)))
      } catch (cause) {
        const why = (cause as Error).message
        throw new Fault('archive_unavailable', why, { cause, retriable: true })
      }
    },
    list: (folder) => walk(root, at(folder)),
    remove: async (name) => {
      await rm(at(name), { force: true })
      await orNull(syncFolder(dirname(at(name))))
    },
  }
}

/** A folder's name is durable once its parent is synced; `mkdir` says where the new ones begin. */
const makeFolder = async (folder: string): Promise<void> => {
  const first = await mkdir(folder, { recursive: true, mode: 0o750 })
  if (first === undefined) return
  for (let made = folder; made.length >= first.length; made = dirname(made))
    await syncFolder(dirname(made))
}

const syncFolder = async (folder: string): Promise<void> => {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

async function* walk(root: string, folder: string): AsyncGenerator<Stored> {
  const found = (await orNull(readdir(folder, { withFileTypes: true }))) ?? []
  for (const each of found.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(folder, each.name)
    if (each.isDirectory()) yield* walk(root, path)
    else {
      const size = await orNull(stat(path))
      const name = relative(root, path).split(sep).join('/')
      if (size !== null) yield { path: name, bytes: size.size }
    }
  }
}

/** `null` for what is not there. */
const orNull = async <R>(work: Promise<R>): Promise<R | null> => {
  try {
    return await work
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return null
    throw error
  }
}
