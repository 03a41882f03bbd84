// Reads answers off one connection as their bytes come: the head, informational ones before it, and the body's end.
import { type AnswerHead, mayBeginAnswer, parseHead } from './answer-head.ts'
import { type Chunks, openChunks } from './chunks.ts'

/**
 * `complete`: to its last byte. `excess`: and there is more, that nobody asked for. The last two are no answers
 * that can be read.
 */
export type Told = 'more' | 'complete' | 'excess' | 'malformed' | 'head_too_large'

export type AnswerReader = {
  /** Of the answer being read, once it is there. */
  head(): AnswerHead | null
  /** Of its body: bytes so far as they came, chunk sizes and all, and the data of what is no success. */
  bodyBytes(): number
  body(): Buffer
  read(bytes: Buffer): Told
  /** Nothing more comes. */
  end(): Told
  /** The next answer. */
  begin(): void
}

const headEnd = Buffer.from('\r\n\r\n')
const nothing: Buffer = Buffer.alloc(0)
/** A head that is no longer is remembered: receivers say the same again, at least for a second. */
const rememberedMax = 1_024
/** Enough of a head that is not there yet to know its first line, however often a byte comes. */
const lineBytesMax = 512
const switching = 101
/** So many informational answers come before the real one, and no more: each resets what a head may hold. */
const informationalMax = 32

export const openAnswerReader = (headersBytesMax: number): AnswerReader => {
  let kept: Buffer = nothing
  let head: AnswerHead | null = null
  let informational = 0
  let left = 0
  let chunks: Chunks | null = null
  let bodyBytes = 0
  let data: Buffer[] = []
  let lastText = ''
  let lastHead: AnswerHead | null = null

  const parse = (text: string): AnswerHead | null => {
    if (text === lastText) return lastHead
    const parsed = parseHead(text)
    if (text.length <= rememberedMax) [lastText, lastHead] = [text, parsed]
    return parsed
  }
  /** What follows the first head in these bytes; a word: there is none yet, or never will be. */
  const nextHead = (bytes: Buffer): { parsed: AnswerHead; rest: Buffer } | Told => {
    const end = bytes.indexOf(headEnd)
    if ((end < 0 ? bytes.length : end) > headersBytesMax) return 'head_too_large'
    if (end < 0) {
      kept = bytes
      return mayBeginAnswer(bytes.toString('latin1', 0, lineBytesMax)) ? 'more' : 'malformed'
    }
    const parsed = parse(bytes.toString('latin1', 0, end))
    // Nobody asked for another protocol.
    if (!parsed || parsed.status === switching) return 'malformed'
    return { parsed, rest: bytes.subarray(end + headEnd.length) }
  }
  const readHead = (bytes: Buffer): Told => {
    let rest: Buffer = kept.length === 0 ? bytes : Buffer.concat([kept, bytes])
    kept = nothing
    // Informational answers come before the real one.
    while (head === null) {
      const next = nextHead(rest)
      if (typeof next === 'string') return next
      rest = next.rest
      if (next.parsed.status >= 200) head = next.parsed
      else informational += 1
      if (informational > informationalMax) return 'malformed'
    }
    if (head.framing === 'chunks') chunks = openChunks()
    else left = head.framing === 'close' ? Number.POSITIVE_INFINITY : head.framing
    return readBody(rest)
  }
  const take = (bytes: Buffer) => {
    // Of a success nobody wants to know more.
    if (bytes.length > 0 && (head?.status ?? 0) >= 300) data.push(bytes)
  }
  const readBody = (bytes: Buffer): Told => {
    bodyBytes += bytes.length
    if (chunks) return chunks.read(bytes, take)
    take(bytes.length > left ? bytes.subarray(0, left) : bytes)
    left -= bytes.length
    if (left > 0) return 'more'
    return left === 0 ? 'complete' : 'excess'
  }
  return {
    head: () => head,
    bodyBytes: () => bodyBytes,
    body: () => (data.length === 0 ? nothing : Buffer.concat(data)),
    read: (bytes) => (head ? readBody(bytes) : readHead(bytes)),
    end: () => (head?.framing === 'close' ? 'complete' : 'more'),
    begin: () => {
      kept = nothing
      head = null
      informational = 0
      left = 0
      chunks = null
      bodyBytes = 0
      if (data.length > 0) data = []
    },
  }
}
