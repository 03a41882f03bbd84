// Avro's long as a plain number, exact over the whole safe range: avsc's own flips the sign below −2^52.
import avro, { type Type } from 'avsc'

const varint = Buffer.alloc(10)
/** Doubling such a number for the zigzag is exact in a double. */
const exactMax = 2 ** 51

const write = (value: number): Buffer => {
  if (value > exactMax || value < -exactMax) return writeLarge(BigInt(value))
  let rest = value >= 0 ? value * 2 : -value * 2 - 1
  let at = 0
  while (rest >= 128) {
    varint[at++] = (rest % 128) | 128
    rest = Math.floor(rest / 128)
  }
  varint[at++] = rest
  return varint.subarray(0, at)
}

const writeLarge = (value: bigint): Buffer => {
  let rest = value >= 0n ? value * 2n : -value * 2n - 1n
  let at = 0
  for (; rest >= 128n; rest >>= 7n) varint[at++] = Number(rest & 127n) | 128
  varint[at++] = Number(rest)
  return varint.subarray(0, at)
}

const read = (bytes: Uint8Array): number => {
  // Seven bytes carry 49 bits: within what a double holds.
  if (bytes.length > 7) return readLarge(bytes)
  let zigzag = 0
  for (let at = bytes.length - 1; at >= 0; at--) zigzag = zigzag * 128 + ((bytes[at] ?? 0) & 127)
  return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
}

const readLarge = (bytes: Uint8Array): number => {
  let zigzag = 0n
  for (let at = bytes.length - 1; at >= 0; at--)
    zigzag = (zigzag << 7n) + BigInt((bytes[at] ?? 0) & 127)
  const value = Number(zigzag % 2n === 0n ? zigzag / 2n : -(zigzag + 1n) / 2n)
  if (!Number.isSafeInteger(value)) throw new Error(`a long of ${value} is not exact as a number`)
  return value
}

export const numberLong: Type = avro.types.LongType.__with(
  {
    fromBuffer: read,
    toBuffer: write,
    fromJSON: Number,
    toJSON: (value: number) => value,
    isValid: Number.isSafeInteger,
    compare: (one: number, other: number) => Math.sign(one - other),
  },
  true,
)
