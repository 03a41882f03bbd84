// SipHash-2-4 with 128 bits over a text's UTF-16: what cannot be predicted without the key, at a fifth
// of the cost of a digest from node:crypto, whose calls cost more than their work on short texts. Pure.

/** The low and the high half of each of its two 64-bit words. */
export type SipKey = readonly [number, number, number, number]

export const sipKeyOf = (bytes: Buffer): SipKey => [
  bytes.readUInt32LE(0),
  bytes.readUInt32LE(4),
  bytes.readUInt32LE(8),
  bytes.readUInt32LE(12),
]

/** v0 to v3, each as low and high half. */
const v = new Int32Array(8)

const rounds = (count: number): void => {
  let a = v[0] as number
  let A = v[1] as number
  let b = v[2] as number
  let B = v[3] as number
  let c = v[4] as number
  let C = v[5] as number
  let d = v[6] as number
  let D = v[7] as number
  for (let round = 0; round < count; round++) {
    let low = (a >>> 0) + (b >>> 0)
    A = (A + B + (low > 0xffffffff ? 1 : 0)) | 0
    a = low | 0
    let t = (b << 13) | (B >>> 19)
    B = ((B << 13) | (b >>> 19)) ^ A
    b = t ^ a
    t = a
    a = A
    A = t
    low = (c >>> 0) + (d >>> 0)
    C = (C + D + (low > 0xffffffff ? 1 : 0)) | 0
    c = low | 0
    t = (d << 16) | (D >>> 16)
    D = ((D << 16) | (d >>> 16)) ^ C
    d = t ^ c
    low = (a >>> 0) + (d >>> 0)
    A = (A + D + (low > 0xffffffff ? 1 : 0)) | 0
    a = low | 0
    t = (d << 21) | (D >>> 11)
    D = ((D << 21) | (d >>> 11)) ^ A
    d = t ^ a
    low = (c >>> 0) + (b >>> 0)
    C = (C + B + (low > 0xffffffff ? 1 : 0)) | 0
    c = low | 0
    t = (b << 17) | (B >>> 15)
    B = ((B << 17) | (b >>> 15)) ^ C
    b = t ^ c
    t = c
    c = C
    C = t
  }
  v[0] = a
  v[1] = A
  v[2] = b
  v[3] = B
  v[4] = c
  v[5] = C
  v[6] = d
  v[7] = D
}

const take = (low: number, high: number): void => {
  v[6] = (v[6] as number) ^ low
  v[7] = (v[7] as number) ^ high
  rounds(2)
  v[0] = (v[0] as number) ^ low
  v[1] = (v[1] as number) ^ high
}

const unitAt = (text: string, at: number): number => (at < text.length ? text.charCodeAt(at) : 0)

const writeWord = (into: Buffer, at: number): void => {
  const low = (v[0] as number) ^ (v[2] as number) ^ (v[4] as number) ^ (v[6] as number)
  const high = (v[1] as number) ^ (v[3] as number) ^ (v[5] as number) ^ (v[7] as number)
  into.writeInt32LE(low, at)
  into.writeInt32LE(high, at + 4)
}

/** Writes 16 bytes. */
export const siphash = (key: SipKey, text: string, into: { buffer: Buffer; at: number }): void => {
  const [k0, k1, k2, k3] = key
  v[0] = k0 ^ 0x70736575
  v[1] = k1 ^ 0x736f6d65
  v[2] = k2 ^ 0x6e646f6d ^ 0xee
  v[3] = k3 ^ 0x646f7261
  v[4] = k0 ^ 0x6e657261
  v[5] = k1 ^ 0x6c796765
  v[6] = k2 ^ 0x79746573
  v[7] = k3 ^ 0x74656462
  const whole = text.length & ~3
  let at = 0
  for (; at < whole; at += 4)
    take(
      text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16),
      text.charCodeAt(at + 2) | (text.charCodeAt(at + 3) << 16),
    )
  // The last word holds what is left and, in its highest byte, the length in bytes.
  take(
    unitAt(text, at) | (unitAt(text, at + 1) << 16),
    unitAt(text, at + 2) | (((text.length * 2) & 0xff) << 24),
  )
  v[4] = (v[4] as number) ^ 0xee
  rounds(4)
  writeWord(into.buffer, into.at)
  v[2] = (v[2] as number) ^ 0xdd
  rounds(4)
  writeWord(into.buffer, into.at + 8)
}
