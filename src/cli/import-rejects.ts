// The file that rejected lines go to, with their number and reason: each once, however often an import was killed.
import { createReadStream } from 'node:fs'
import { appendFile, stat, truncate } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { LineRejection } from '../import/record.ts'
import { openRecords } from '../import/record-end.ts'

/** Of a rejected line, in characters. */
const textLengthMax = 2_000

export type RejectedChunk = {
  readonly line: number
  readonly bytes: Buffer
  /** `null`: every line is a record. */
  readonly delimiter: string | null
  readonly rejected: readonly LineRejection[]
}

export type Rejects = {
  readonly path: string
  add(chunk: RejectedChunk): Promise<void>
}

type About = { readonly importId: number; readonly file: string }

export const openRejects = (path: string, { importId, file }: About): Rejects => ({
  path,
  add: async (chunk) => {
    if (chunk.rejected.length === 0) return
    const written = chunk.rejected.map((rejection) =>
      JSON.stringify({ import: importId, file, ...rejection, text: textOf(chunk, rejection.line) }),
    )
    await appendFile(path, `${written.join('\n')}\n`, { mode: 0o600 })
  },
})

/** Which lines of an import, from one on, are in the file already. What a kill cut short is cut away. */
export const writtenFrom = async (
  path: string,
  { importId, line }: { readonly importId: number; readonly line: number },
): Promise<ReadonlySet<string>> => {
  const found = await stat(path).catch(() => null)
  const written = new Set<string>()
  if (found === null) return written
  let whole = 0
  for await (const text of createInterface({ input: createReadStream(path) })) {
    const one = parse(text)
    if (one === null) break
    whole += Buffer.byteLength(text) + 1
    if (one.import === importId && one.line >= line) written.add(nameOf(one))
  }
  if (whole < found.size) await truncate(path, whole)
  return written
}

export const nameOf = ({ line, index }: Pick<LineRejection, 'line' | 'index'>): string =>
  `${line}.${index}`

type Written = Pick<LineRejection, 'line' | 'index'> & { readonly import: number }

const parse = (text: string): Written | null => {
  try {
    return JSON.parse(text) as Written
  } catch {
    return null
  }
}

const newline = 10

const textOf = ({ bytes, line: first, delimiter }: RejectedChunk, line: number): string => {
  let start = 0
  for (let at = first; at < line; at += 1) {
    const found = bytes.indexOf(newline, start)
    if (found < 0) return ''
    start = found + 1
  }
  const rest = bytes.subarray(start)
  const records = openRecords(delimiter)
  records.scan(rest, { bytesMax: rest.length, linesMax: 1 })
  // The lines after a quote that is not closed were read on their own.
  const isOpen = records.end === 0 && records.isOpen
  const end = records.end || (isOpen && rest.indexOf(newline) + 1) || rest.length
  return rest
    .toString('utf8', 0, end)
    .replace(/\r?\n$/, '')
    .slice(0, textLengthMax)
    .toWellFormed()
}
