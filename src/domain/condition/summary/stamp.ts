// The binary form of when something was said.
import type { ByteReader, ByteWriter } from '../../bytes.ts'
import type { Stamp } from '../../traits.ts'

export const writeStamp = (to: ByteWriter, { te, r, id }: Stamp): void => {
  to.varint(te)
  to.signed(r - te)
  const isUuid = uuid.test(id)
  to.varint(isUuid ? 0 : 1)
  if (isUuid) writeUuid(to, id.replaceAll('-', ''))
  else to.text(id)
}

export const readStamp = (from: ByteReader): Stamp => {
  const te = from.varint()
  const r = te + from.signed()
  if (from.varint() !== 0) return { te, r, id: from.text() }
  let hex = ''
  for (const [start, end] of uuidPieces)
    hex += from
      .varint()
      .toString(16)
      .padStart(end - start, '0')
  return { te, r, id: hex.replace(dashes, '$1-$2-$3-$4-$5') }
}

const writeUuid = (to: ByteWriter, hex: string): void => {
  for (const [from, until] of uuidPieces) to.varint(Number.parseInt(hex.slice(from, until), 16))
}

/** Nearly all message ids are one: 19 bytes in place of 37. */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const uuidPieces = [
  [0, 12],
  [12, 24],
  [24, 32],
] as const
const dashes = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/
