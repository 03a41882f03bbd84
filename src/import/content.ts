// Content as it comes: gzip is known by its first bytes, whatever the name says.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'

const magic = [0x1f, 0x8b] as const

/** Nothing was compressed with another program than gzip, or it is passed on as it is. */
export async function* decompressed(
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const pieces = content[Symbol.asyncIterator]()
  const first = await firstPieces(pieces)
  const all = rejoined(first, pieces)
  if (first[0] !== magic[0] || first[1] !== magic[1]) yield* all
  else yield* gunzipped(all)
}

/** Two bytes at least, unless there are no more. */
const firstPieces = async (pieces: AsyncIterator<Uint8Array>): Promise<Buffer> => {
  let held = Buffer.alloc(0)
  while (held.length < magic.length) {
    const { done, value } = await pieces.next()
    if (done) return held
    held = Buffer.concat([held, value])
  }
  return held
}

async function* rejoined(
  first: Buffer,
  pieces: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    if (first.length > 0) yield first
    for (;;) {
      const { done, value } = await pieces.next()
      if (done) return
      yield value
    }
  } finally {
    await pieces.return?.()
  }
}

/** The content itself is at fault: sending it again does not help. */
export class ContentError extends Error {}

async function* gunzipped(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const piped = pipeline(Readable.from(content, { objectMode: false }), gunzip)
  piped.catch(() => undefined)
  try {
    for await (const piece of gunzip) yield piece as Buffer
    await piped
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (typeof code !== 'string' || !code.startsWith('Z_')) throw error
    throw new ContentError(`the gzip data is broken: ${(error as Error).message}`)
  } finally {
    gunzip.destroy()
  }
}

/** What comes after so many bytes. */
export async function* passOver(
  content: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const piece of content) {
    if (left >= piece.length) left -= piece.length
    else {
      yield left === 0 ? piece : piece.subarray(left)
      left = 0
    }
  }
}
