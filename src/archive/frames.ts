// Compression in blocks: a segment is one frame (zstd) or member (gzip) after another, so that whoever
// writes or reads one never holds more than a block of it uncompressed.
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { constants, createGunzip, gzip, zstdCompress, zstdDecompress } from 'node:zlib'
import type { Compression } from './name.ts'

const zstd = promisify(zstdCompress)
const unzstd = promisify(zstdDecompress)
const gz = promisify(gzip)

/** A checksum in each frame, as gzip has by itself: `zstd -t` finds damage without our index. */
const zstdOptions = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

export const compressed = (compression: Compression, block: Uint8Array): Promise<Buffer> =>
  compression === 'zstd' ? zstd(block, zstdOptions) : gz(block)

/** What the blocks held, in pieces. Rejects where the bytes are damaged or cut off. */
export async function* uncompressed(
  compression: Compression,
  bytes: Buffer,
): AsyncGenerator<Buffer> {
  if (compression === 'gzip') {
    if (bytes.length > 0) yield* Readable.from([bytes]).pipe(createGunzip())
    return
  }
  // One frame at a time: Node's own reading of several in a row stops after the first.
  for (let at = 0; at < bytes.length; ) {
    const end = endOfFrame(bytes, at)
    yield await unzstd(bytes.subarray(at, end))
    at = end
  }
}

const magic = 0xfd2fb528
const dictionaryBytes = [0, 1, 2, 4]
const sizeBytes = [0, 2, 4, 8]
/** A block type whose content is one byte, however long it becomes. */
const repeated = 1

/** Where the frame that begins at `at` ends, by RFC 8878. */
const endOfFrame = (bytes: Buffer, at: number): number => {
  if (at + 6 > bytes.length || bytes.readUInt32LE(at) !== magic)
    throw new Error('it is no zstd frame')
  const descriptor = bytes.readUInt8(at + 4)
  const isSingle = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const size = isSingle && sizeFlag === 0 ? 1 : (sizeBytes[sizeFlag] ?? 0)
  let next = at + 5 + (isSingle ? 0 : 1) + (dictionaryBytes[descriptor & 3] ?? 0) + size
  for (let isLast = false; !isLast; ) {
    if (next + 3 > bytes.length) throw new Error('its last zstd frame is cut off')
    const block = bytes.readUIntLE(next, 3)
    isLast = (block & 1) === 1
    next += 3 + (((block >> 1) & 3) === repeated ? 1 : block >> 3)
  }
  const end = next + ((descriptor & 4) === 0 ? 0 : 4)
  if (end > bytes.length) throw new Error('its last zstd frame is cut off')
  return end
}
