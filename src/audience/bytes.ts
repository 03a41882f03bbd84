// Writing and reading the small binary pieces of a packed user: varints and length-prefixed text.

export type ByteWriter = {
  varint(value: number): void
  text(value: string): void
  /** To the end of what is packed. */
  rest(value: string): void
  bytes(value: Uint8Array): void
  take(): Buffer
}

const startBytes = 65_536

/** One scratch buffer, reused for every user; `take` copies out what was written. */
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
    bytes: (value) => {
      room(value.length)
      bytes.set(value, at)
      at += value.length
    },
    take: () => {
      const taken = Buffer.from(bytes.subarray(0, at))
      at = 0
      return taken
    },
  }
}

export type ByteReader = {
  varint(): number
  text(): string
  rest(): string
  restBytes(): Buffer
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
    restBytes: () => bytes.subarray(at),
  }
}
