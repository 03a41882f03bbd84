// Reads a request's body as JSON, whatever its content type says, within its bounds while it streams.
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import type { Json } from '../domain/message.ts'
import { type Refusal, refuse } from './answer.ts'
import type { CollectLimits } from './limits.ts'
import type { Share } from './pressure.ts'

type Limits = Pick<CollectLimits, 'bodyBytesMax' | 'ratioMax' | 'retryAfterSeconds'>

export type Reading = {
  readonly encoding: string | undefined
  readonly limits: Limits
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

const tooLarge = (bytesMax: number) =>
  refuse('request_too_large', `the body is over ${bytesMax} bytes; send fewer calls at once`)

const overloaded = refuse('overloaded', 'too much is in flight; retry after the given seconds')

const collectBytes = (stream: Readable, { limits, share }: Reading) =>
  new Promise<Buffer | Refusal | null>((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    const settle = (result: Buffer | Refusal | null) => {
      stream.off('data', take)
      // What still comes is read and forgotten, so that the client gets to read the answer.
      if (!Buffer.isBuffer(result)) stream.resume()
      resolve(result)
    }
    const take = (chunk: Buffer) => {
      length += chunk.length
      if (length > limits.bodyBytesMax) return settle(tooLarge(limits.bodyBytesMax))
      if (!share.add(chunk.length)) return settle(overloaded)
      chunks.push(chunk)
    }
    stream.on('data', take)
    stream.once('end', () =>
      settle(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length)),
    )
    stream.once('error', () => settle(null))
    stream.once('close', () => settle(null))
  })

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer

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

/** Below this a high ratio costs nothing, and short repetitive batches do reach it. */
const ratioFromBytes = 65_536

const inflate = (raw: Buffer, decompress: Decompress, { limits, share }: Reading) => {
  const byRatio = Math.max(ratioFromBytes, raw.length * limits.ratioMax)
  const maxOutputLength = Math.min(limits.bodyBytesMax, byRatio)
  try {
    const body = decompress(raw, { maxOutputLength })
    if (body.length === 0) return refuse('empty_body', 'the request has no body')
    return share.add(body.length - raw.length) ? body : overloaded
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_BUFFER_TOO_LARGE')
      return refuse('invalid_encoding', 'the body is not what its Content-Encoding says')
    return byRatio < limits.bodyBytesMax
      ? refuse(
          'request_too_large',
          `the body decompresses to over ${limits.ratioMax} times its size`,
        )
      : tooLarge(limits.bodyBytesMax)
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
