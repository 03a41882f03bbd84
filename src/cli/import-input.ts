// What is imported: files, the files of folders, and standard input.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { decompressed } from '../import/content.ts'
import { failing } from './client.ts'

export type Input = {
  readonly name: string
  /** `null`: standard input. */
  readonly path: string | null
  /** Bytes as they are stored, compressed or not. */
  readonly size: number | null
  /** What the same content has again; `null`: nobody knows. */
  digest(told: (bytes: number) => void): Promise<string | null>
  open(): AsyncIterable<Uint8Array>
}

export const rejectsSuffix = '.rejected.ndjson'

/** What a name says of what is in a file; logs may have been rotated. */
export const namedFormat = (name: string): 'ndjson' | 'csv' | 'tsv' | null => {
  const found = /\.(csv|tsv|ndjson|jsonl?|log([.-]\d+)*)(\.gz)?$/i.exec(name)?.[1]?.toLowerCase()
  if (found === undefined) return null
  return found === 'csv' || found === 'tsv' ? found : 'ndjson'
}

type Asked = {
  readonly paths: readonly string[]
  readonly name: string | null
  /** What else is in folders is no calls. */
  readonly takesNamed: boolean
  readonly skip: (path: string) => void
}

export const inputsOf = async ({
  paths,
  name,
  takesNamed,
  skip,
}: Asked): Promise<readonly Input[]> => {
  if (name !== null && !(paths.length === 1 && paths[0] === '-'))
    throw failing(['--name is for standard input, given as "-"'], 2)
  const inputs: Input[] = []
  for (const path of paths)
    if (path === '-') inputs.push(standardInput(name))
    else
      for await (const file of filesOf(path)) {
        const isTaken = !takesNamed || file.path === path || namedFormat(file.name) !== null
        if (isTaken) inputs.push(file)
        else skip(file.path ?? file.name)
      }
  if (inputs.length === 0) throw failing(['there is nothing to import'], 2)
  return inputs
}

/** Under a name that stays the same, an import of the same stream goes on, too. */
const standardInput = (name: string | null): Input => ({
  name: name ?? 'standard input',
  path: null,
  size: null,
  digest: async () =>
    name === null ? null : createHash('sha256').update(`stream ${name}`).digest('hex'),
  open: () => process.stdin,
})

/** In the order of their names; neither what is hidden nor what an import left there. */
async function* filesOf(path: string): AsyncGenerator<Input> {
  const found = await stat(path).catch((error: Error) => {
    throw failing([`${path} cannot be read: ${error.message}`], 2)
  })
  if (!found.isDirectory()) {
    yield fileOf(path, found.size)
    return
  }
  const names = (await readdir(path)).toSorted()
  for (const name of names)
    if (!name.startsWith('.') && !name.endsWith(rejectsSuffix)) yield* filesOf(join(path, name))
}

const pieceBytes = 262_144

const fileOf = (path: string, size: number): Input => {
  const open = () => createReadStream(path, { highWaterMark: pieceBytes })
  return {
    name: basename(path),
    path,
    size,
    digest: async (told) => {
      const hash = createHash('sha256')
      const hashed = async function* () {
        for await (const piece of open() as AsyncIterable<Buffer>) {
          hash.update(piece)
          told(piece.length)
          yield piece
        }
      }
      // Of a file that was cut short nothing is imported: the whole one would be another import.
      for await (const _ of decompressed(hashed()));
      return hash.digest('hex')
    },
    open,
  }
}
