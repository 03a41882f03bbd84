// The head of an answer, read as strictly as RFC 9112 has it: what is ambiguous is malformed. Pure.

/** How long its body is: so many bytes, in chunks, or until the connection is closed. */
export type Framing = number | 'chunks' | 'close'

export type AnswerHead = {
  readonly status: number
  /** As it came; `null`: none. */
  readonly retryAfter: string | null
  readonly framing: Framing
  /** Whether another request may follow on its connection. */
  readonly isKept: boolean
  /** How long the receiver keeps the connection, by its own account; `null`: it said nothing. */
  readonly keptMs: number | null
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
/** No two neighbours of it take the same byte: time grows with the length of a line, whoever wrote it. */
const field = /^([!#$%&'*+.^_`|~\dA-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
const digits = /^\d{1,15}$/
const chunkedLast = /(?:^|,)[\t ]*chunked$/i
const closing = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const keeping = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i

/** What every status line begins with. */
const protocol = 'HTTP/1.'

/** Whether an answer may begin so: what cannot is not waited for. */
export const mayBeginAnswer = (text: string): boolean => {
  const end = text.indexOf('\r\n')
  return end < 0
    ? text.startsWith(protocol.slice(0, text.length))
    : statusLine.test(text.slice(0, end))
}

type Fields = Record<
  'length' | 'encoding' | 'connection' | 'keepAlive' | 'retryAfter',
  string | null
>

/** No plain object: a receiver chooses what is looked up. */
const names: ReadonlyMap<string, keyof Fields> = new Map([
  ['content-length', 'length'],
  ['transfer-encoding', 'encoding'],
  ['connection', 'connection'],
  ['keep-alive', 'keepAlive'],
  ['retry-after', 'retryAfter'],
])

/** Of its lines without the empty one at the end; `null`: malformed. */
export const parseHead = (text: string): AnswerHead | null => {
  const [first = '', ...lines] = text.split('\r\n')
  const [, minor, status] = statusLine.exec(first) ?? []
  const fields = fieldsOf(lines)
  if (status === undefined || fields === null) return null
  const framing = framingOf(Number(status), fields)
  if (framing === null) return null
  const { connection, keepAlive, retryAfter } = fields
  // Chunks are unknown to 1.0: whoever passed them on may not know where they end.
  const isWanted =
    minor === '1'
      ? !closing.test(connection ?? '')
      : keeping.test(connection ?? '') && fields.encoding === null
  const seconds = /timeout=(\d{1,6})/i.exec(keepAlive ?? '')?.[1]
  return {
    status: Number(status),
    retryAfter,
    framing,
    isKept: isWanted && framing !== 'close' && !isBodyLikely(Number(status), fields),
    keptMs: seconds === undefined ? null : Number(seconds) * 1_000,
  }
}

const isBlank = (char: string | undefined): boolean => char === ' ' || char === '\t'

/** Without the blanks and tabs around it, and those alone: what else passes for a blank is part of a value. */
const trimmed = (value: string): string => {
  let [start, end] = [0, value.length]
  while (start < end && isBlank(value[start])) start += 1
  while (end > start && isBlank(value[end - 1])) end -= 1
  return value.slice(start, end)
}

const fieldsOf = (lines: readonly string[]): Fields | null => {
  const fields: Fields = {
    length: null,
    encoding: null,
    connection: null,
    keepAlive: null,
    retryAfter: null,
  }
  for (const line of lines) {
    const [, name, value = ''] = field.exec(line) ?? []
    if (name === undefined) return null
    const known = names.get(name.toLowerCase())
    if (known === undefined) continue
    const before = fields[known]
    // Two lengths, even equal ones, and a body's end is anybody's guess.
    if (before !== null && known === 'length') return null
    fields[known] = before === null ? trimmed(value) : `${before},${trimmed(value)}`
  }
  return fields
}

const framingOf = (status: number, { length, encoding }: Fields): Framing | null => {
  if (length !== null && (encoding !== null || !digits.test(length))) return null
  if (isBodiless(status)) return 0
  if (encoding !== null) return chunkedLast.test(encoding) ? 'chunks' : 'close'
  return length === null ? 'close' : Number(length)
}

const isBodiless = (status: number): boolean => status < 200 || status === 204 || status === 304

/** A body that must not be there would be taken for the next answer. */
const isBodyLikely = (status: number, { length, encoding }: Fields): boolean =>
  isBodiless(status) && (encoding !== null || Number(length ?? 0) > 0)
