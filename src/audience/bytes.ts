// Writing and reading the small binary pieces of a packed user: varints and length-prefixed text.

export type ByteWriter = {
  varint(value: number): void
  text(value: string): void
  /** To the end of what is packed. */
  rest(value: string): void
  /** Bytes of something packed before, as they are. */
  packed(value: string, from: number, until: number): void
  /** How much was written. */
  length(): number
  /** What was written, as a string of bytes; the next user starts anew. */
  take(): string
}

const startBytes = 65_536

/** One scratch buffer, reused for every user. */
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
  return {
    varint,
    text: (value) => {
      varint(Buffer.byteLength(value))
      rest(value)
    },
    rest,
    packed: (value, from, until) => {
      room(until - from)
      for (let index = from; index < until; index++) bytes[at++] = value.charCodeAt(index)
    },
    length: () => at,
    take: () => {
      const taken = bytes.toString('latin1', 0, at)
      at = 0
      return taken
    },
  }
}

export type ByteReader = {
  varint(): number
  text(): string
  rest(): string
}

export const byteReader = (bytes: Buffer): ByteReader => {
  let at = 0
  const varint = () => {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = bytes[at++]
      if (byte === undefined) throw new RangeError('a packed user ends early')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 0x80
    }
  }
  return {
    varint,
    text: () => {
      const length = varint()
      const text = bytes.toString('utf8', at, at + length)
      at += length
      return text
    },
    rest: () => bytes.toString('utf8', at),
  }
}

export type PackedReader = {
  open(packed: string, at: number): void
  varint(): number
  /** So many varints. */
  skip(count: number): void
  at(): number
}

/** Over strings of bytes; one reader for all, opened anew for each. */
export const packedReader = (): PackedReader => {
  let packed = ''
  let at = 0
  const next = (): number => {
    if (at >= packed.length) throw new RangeError('a packed user ends early')
    return packed.charCodeAt(at++)
  }
  return {
    open: (text, from) => {
      packed = text
      at = from
    },
    varint: () => {
      let byte = next()
      let value = byte & 0x7f
      for (let scale = 0x80; byte >= 0x80; scale *= 0x80) {
        byte = next()
        value += (byte & 0x7f) * scale
      }
      return value
    },
    skip: (count) => {
      for (let left = count; left > 0; ) if (next() < 0x80) left--
    },
    at: () => at,
  }
}
