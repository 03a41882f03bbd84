// Writing and reading the small binary pieces of packed state: varints and length-prefixed text.

export type ByteWriter = {
  /** A whole number from 0 to 2^53. */
  varint(value: number): void
  /** A whole number of either sign, within 2^52. */
  signed(value: number): void
  text(value: string): void
  /** To the end of what is packed. */
  rest(value: string): void
  /** Bytes of something packed before, as they are. */
  packed(value: string, from: number, until: number): void
  /** What follows until it is closed has its length in bytes before it. */
  open(): number
  close(opened: number): void
  /** How much was written. */
  length(): number
  /** What was written, as a string of bytes; the next one starts anew. */
  take(): string
}

const startBytes = 65_536

/** One scratch buffer, reused for everything. */
export const byteWriter = (): ByteWriter => {
  let bytes = Buffer.allocUnsafe(startBytes)
  let at = 0
  const room = (wanted: number) => {
    if (at + wanted <= bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(bytes.length * 2, at + wanted))
    bytes.copy(larger, 0, 0, at)
    bytes = larger
  }
  const varint = (value: number) => {
    room(10)
    let left = value
    while (left >= 0x80) {
      bytes[at++] = (left % 0x80) | 0x80
      left = Math.floor(left / 0x80)
    }
    bytes[at++] = left
  }
  const rest = (value: string) => {
    room(value.length * 3)
    at += bytes.write(value, at)
  }
  const packed = (value: string, from: number, until: number) => {
    room(until - from)
    const to = bytes
    const shift = at - from
    for (let index = from; index < until; index++) to[index + shift] = value.charCodeAt(index)
    at = shift + until
  }
  return {
    varint,
    signed: (value) => varint(value < 0 ? -2 * value - 1 : 2 * value),
    text: (value) => {
      if (isShortAscii(value)) {
        varint(value.length)
        packed(value, 0, value.length)
        return
      }
      varint(Buffer.byteLength(value))
      rest(value)
    },
    rest,
    packed,
    open: () => {
      // Nearly always one byte says the length: room is left for it, and more is made where it is not.
      room(1)
      at += 1
      return at
    },
    close: (start) => {
      const length = at - start
      at = start - 1
      if (length < 0x80) varint(length)
      else {
        const body = bytes.toString('latin1', start, start + length)
        varint(length)
        room(length)
        bytes.write(body, at, 'latin1')
      }
      at += length
    },
    length: () => at,
    take: () => {
      const taken = bytes.toString('latin1', 0, at)
      at = 0
      return taken
    },
  }
}

const shortMax = 64

/** What is called to write text costs more than a short one does. */
const isShortAscii = (value: string): boolean => {
  if (value.length > shortMax) return false
  for (let at = 0; at < value.length; at++) if (value.charCodeAt(at) >= 0x80) return false
  return true
}

export type ByteReader = {
  varint(): number
  signed(): number
  text(): string
}

/** Over strings of bytes; one reader for all, opened anew for each. */
export type PackedReader = ByteReader & {
  open(packed: string, at: number): void
  /** So many bytes. */
  skip(count: number): void
  /** To the end. */
  rest(): string
  at(): number
}

/** Nearly all texts are without: the bytes of those are the text. */
const beyondAscii = /[\x80-\xff]/

const textOf = (bytes: string): string =>
  beyondAscii.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes

export const packedReader = (): PackedReader => {
  let packed = ''
  let at = 0
  const next = (): number => {
    if (at >= packed.length) throw new RangeError('packed state ends early')
    return packed.charCodeAt(at++)
  }
  const varint = (): number => {
    let byte = next()
    let value = byte & 0x7f
    for (let scale = 0x80; byte >= 0x80; scale *= 0x80) {
      byte = next()
      value += (byte & 0x7f) * scale
    }
    return value
  }
  const skip = (count: number) => {
    at += count
    if (at > packed.length) throw new RangeError('packed state ends early')
  }
  return {
    open: (text, from) => {
      packed = text
      at = from
    },
    varint,
    signed: () => {
      const value = varint()
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    },
    text: () => {
      const length = varint()
      const start = at
      skip(length)
      return textOf(packed.slice(start, at))
    },
    skip,
    rest: () => textOf(packed.slice(at)),
    at: () => at,
  }
}
