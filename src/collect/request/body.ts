// Reads a request's body as JSON, whatever its content type says, within its bounds while it streams.
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import type { Json } from '../../domain/message.ts'
import { type Refusal, refuse } from '../answer/answer.ts'
import type { Share } from '../gate/pressure.ts'

export type Reading = {
  readonly encoding: string | undefined
  readonly bodyBytesMax: number
  readonly ratioMax: number
  readonly share: Share
}

/** `null` when the client went away before the end: there is nobody to answer. */
export const readBody = async (
  stream: Readable,
  reading: Reading,
): Promise<Buffer | Refusal | null> => {
  const decompress = decompressorOf(reading.encoding)
  if (!decompress)
    return refuse('unsupported_encoding', 'Content-Encoding must be gzip, deflate, br or absent')
  const raw = await collectBytes(stream, reading)
  if (!Buffer.isBuffer(raw)) return raw
  if (raw.length === 0) return refuse('empty_body', 'the request has no body')
  if (decompress === 'identity') return raw
  return inflate(raw, decompress, reading)
}

export const tooLarge = (bytesMax: number) =>
  refuse('request_too_large', `the body is over ${bytesMax} bytes; send fewer calls at once`)

const overloaded = refuse('overloaded', 'too much is in flight; retry after the given seconds')

const collectBytes = (stream: Readable, { bodyBytesMax, share }: Reading) =>
  new Promise<Buffer | Refusal | null>((resolve) => {
    // The client may have left while its key was looked for: nothing more would be heard of it.
    if (stream.destroyed) return resolve(null)
    const held = openHeld()
    const settle = (result: Buffer | Refusal | null) => {
      stream.off('data', take)
      // What still comes is read and forgotten, so that the client gets to read the answer.
      if (!Buffer.isBuffer(result)) stream.resume()
      resolve(result)
    }
    const take = (chunk: Buffer) => {
      if (held.length() + chunk.length > bodyBytesMax) return settle(tooLarge(bodyBytesMax))
      if (!share.add(chunk.length)) return settle(overloaded)
      held.add(chunk)
    }
    stream.on('data', take)
    stream.once('end', () => settle(held.bytes()))
    stream.once('error', () => settle(null))
    stream.once('close', () => settle(null))
  })

/**
 * The bytes that came so far. A body in one piece is that piece; pieces are copied into one buffer, at most
 * twice as large, because a client may send each byte in a piece of its own.
 */
const openHeld = () => {
  let buffer: Buffer = Buffer.alloc(0)
  let length = 0
  return {
    length: () => length,
    bytes: () => buffer.subarray(0, length),
    add: (chunk: Buffer) => {
      const needed = length + chunk.length
      if (length === 0) buffer = chunk
      else {
        if (needed > buffer.length) {
          const larger = Buffer.allocUnsafe(Math.max(needed, 2 * buffer.length))
          buffer.copy(larger, 0, 0, length)
          buffer = larger
        }
        chunk.copy(buffer, length)
      }
      length = needed
    },
  }
}

type Options = { readonly maxOutputLength: number; readonly info: true }
/** With `info` there is the engine beside the bytes, which is not in the declared types. */
type Decompress = (bytes: Buffer, options: Options) => unknown
type Decompressed = { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } }

const decompressorOf = (encoding: string | undefined): Decompress | 'identity' | null => {
  switch (encoding?.trim().toLowerCase()) {
    case undefined:
    case '':
    case 'identity':
      return 'identity'
    case 'gzip':
    case 'x-gzip':
      return gunzipSync
    case 'deflate':
      return (bytes, options) => (isZlib(bytes) ? inflateSync : inflateRawSync)(bytes, options)
    case 'br':
      return brotliDecompressSync
    default:
      return null
  }
}

/** RFC 9110 says zlib, some clients send bare deflate: the zlib header tells. */
const isZlib = (bytes: Buffer) =>
  bytes.length > 1 && ((bytes[0] as number) & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0

const notEncoded = refuse('invalid_encoding', 'the body is not what its Content-Encoding says')

/** Below this a high ratio costs nothing, and short repetitive batches do reach it. */
const ratioFromBytes = 65_536

const inflate = (raw: Buffer, decompress: Decompress, reading: Reading) => {
  const { bodyBytesMax, ratioMax, share } = reading
  const byRatio = Math.max(ratioFromBytes, raw.length * ratioMax)
  const maxOutputLength = Math.min(bodyBytesMax, byRatio)
  try {
    const { buffer: body, engine } = decompress(raw, {
      maxOutputLength,
      info: true,
    }) as Decompressed
    // What follows the end would be passed over: nothing of a body is taken only in part.
    if (engine.bytesWritten !== raw.length) return notEncoded
    if (body.length === 0) return refuse('empty_body', 'the request has no body')
    return share.add(body.length - raw.length) ? body : overloaded
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_BUFFER_TOO_LARGE') return notEncoded
    return byRatio < bodyBytesMax
      ? refuse('request_too_large', `the body decompresses to over ${ratioMax} times its size`)
      : tooLarge(bodyBytesMax)
  }
}

export const parseJson = (body: Buffer): { readonly json: Json } | Refusal => {
  if (!isUtf8(body)) return refuse('invalid_json', 'the body is not UTF-8')
  const text = body.toString('utf8', hasMark(body) ? 3 : 0)
  try {
    return { json: JSON.parse(text) as Json }
  } catch {
    // The parser's own message quotes the body, which must not reach a log.
    return refuse('invalid_json', 'the body is not JSON')
  }
}

const hasMark = (body: Buffer) => body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf
