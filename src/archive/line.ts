// One entry of the log as one line of a segment, and back: what is read again equals what the log held.
import { digestOf, type Message, type Outbound } from '../domain/message.ts'
import type { Codec, Recorded } from '../log/log.ts'

/** What every record of an archived topic has. */
export type Kept = Message | Outbound

/** The record without its body and digest, as a line says it. */
export type Head = {
  readonly offset: bigint
  readonly key: string
  readonly receivedAt: number
  readonly timestamp: number
  readonly workspaceId: number
  readonly type?: string
  readonly userId: string | null
  readonly anonymousId?: string | null
  readonly previousId?: string | null
  readonly sentAt?: number | null
}

const open = Buffer.from('{"offset":')
const bodyMark = Buffer.from(',"body":')
const close = Buffer.from('}\n')
const noBody = Buffer.from('null')
const newline = 10

/**
 * The fields of the record in their own names, the body last and byte for byte as it was. Where that
 * would not give the same bytes back (another version wrote them), the line carries them as well.
 */
export const lineOf = (codec: Codec<Kept>, entry: Recorded, record: Kept): Buffer => {
  const { body, ...rest } = record
  const { digest: _, ...head } = rest as typeof rest & { digest?: Uint8Array }
  const isText = isJsonText(body)
  const isExact = isText && sameBytes(codec.encode(restored(head, body)), entry.value)
  const fields = {
    key: entry.key,
    ...head,
    ...(isExact ? {} : { value: Buffer.from(entry.value).toString('base64') }),
  }
  const text = Buffer.from(`${entry.offset},${JSON.stringify(fields).slice(1, -1)}`)
  return Buffer.concat([open, text, bodyMark, isText ? body : noBody, close])
}

/** The edge writes nothing else; a line must hold on to its line all the same. */
const isJsonText = (body: Uint8Array): boolean =>
  body[0] === 0x7b && body.at(-1) === 0x7d && !body.includes(newline)

const sameBytes = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0

const restored = (head: object, body: Uint8Array): Kept => {
  const isCall = 'sourceId' in head
  return { ...head, ...(isCall ? { digest: digestOf(head as Message) } : {}), body } as Kept
}

type Parsed = Omit<Head, 'offset'> & { readonly value?: string }

const parsed = (line: Buffer): { readonly mark: number; readonly fields: Parsed & object } => {
  // A quote within a JSON string is escaped: the first mark is the body's.
  const mark = line.indexOf(bodyMark)
  if (mark < 0 || !line.subarray(0, open.length).equals(open))
    throw new Error('a line is not an entry of an archive')
  return { mark, fields: JSON.parse(`${line.toString('utf8', 0, mark)}}`) as Parsed }
}

/** Exact, which a number of JSON.parse is not. */
export const offsetOf = (line: Buffer): bigint =>
  BigInt(line.toString('latin1', open.length, line.indexOf(44)))

export const headOf = (line: Buffer): Head => ({ ...parsed(line).fields, offset: offsetOf(line) })

/** The line's entry; `line` without its newline. */
export const entryOf = (codec: Codec<Kept>, line: Buffer): Recorded => {
  const { mark, fields } = parsed(line)
  const { offset: _, key, value, ...head } = fields as Parsed & { offset: number }
  const offset = offsetOf(line)
  if (value !== undefined) return { offset, key, value: Buffer.from(value, 'base64') }
  const body = line.subarray(mark + bodyMark.length, -1)
  return { offset, key, value: codec.encode(restored(head, body)) }
}

/** Lines without their newlines, of pieces that end anywhere. */
export async function* linesOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer[]> {
  let left: Buffer = Buffer.alloc(0)
  for await (const piece of pieces) {
    const bytes = left.length === 0 ? piece : Buffer.concat([left, piece])
    const lines: Buffer[] = []
    let at = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, at)) {
      lines.push(bytes.subarray(at, end))
      at = end + 1
    }
    left = bytes.subarray(at)
    if (lines.length > 0) yield lines
  }
  if (left.length > 0) throw new Error('its last line is cut off')
}
