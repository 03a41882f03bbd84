// The binary format of COPY, which costs Postgres and us several times less than text: its frame, and its fields.

export const copyHeader = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
export const copyTrailer = Buffer.from([0xff, 0xff])

/** Postgres counts microseconds from the year 2000. */
const epochMs = Date.UTC(2000, 0, 1)

/** A timestamptz, as `putInt8` takes it. */
export const microsOf = (ms: number): number => (ms - epochMs) * 1_000

const bitsOfHigh = 0x1_0000_0000

/** Each writes one field at `at`, and answers where the next one begins. */
export const putNull = (to: Buffer, at: number): number => to.writeInt32BE(-1, at)

export const putInt4 = (to: Buffer, value: number, at: number): number =>
  to.writeInt32BE(value, to.writeInt32BE(4, at))

export const putInt8 = (to: Buffer, value: number, at: number): number => {
  const high = Math.floor(value / bitsOfHigh)
  const start = to.writeInt32BE(8, at)
  return to.writeUInt32BE(value - high * bitsOfHigh, to.writeInt32BE(high, start))
}

export const putReal = (to: Buffer, value: number, at: number): number =>
  to.writeFloatBE(value, to.writeInt32BE(4, at))

export const putBoolean = (to: Buffer, value: boolean, at: number): number =>
  to.writeUInt8(value ? 1 : 0, to.writeInt32BE(1, at))

/** In UTF-8: three bytes a character at most. */
export const putText = (to: Buffer, value: string, at: number): number => {
  const length = to.write(value, at + 4)
  return to.writeInt32BE(length, at) + length
}
