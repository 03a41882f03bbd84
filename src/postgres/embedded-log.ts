// The embedded server's own log, kept in the data directory under a fixed size.
import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import type { Readable } from 'node:stream'

/** Of each of the two files, the current one and the one before. */
export const postgresLogBytesMax = 4 * 1024 * 1024

/** How much of the end is remembered for the message of a failed start. */
const tailCharactersMax = 4_000

export type ServerLog = { tail(): string }

/** Drains `stream` into `path`; at the limit the file becomes `<path>.1`, replacing the one there. */
export const keepServerLog = (
  stream: Readable,
  path: string,
  bytesMax = postgresLogBytesMax,
): ServerLog => {
  let file = openSync(path, 'a', 0o600)
  let size = statSync(path).size
  let tail = ''
  stream.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-tailCharactersMax)
    if (size + chunk.length > bytesMax) {
      closeSync(file)
      renameSync(path, `${path}.1`)
      file = openSync(path, 'a', 0o600)
      size = 0
    }
    size += writeSync(file, chunk)
  })
  stream.on('close', () => closeSync(file))
  return { tail: () => tail.trim() }
}
