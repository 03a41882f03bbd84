// Users packed by the first release: its summaries were all counts, and did not say how long they are.
import { byteWriter, packedReader } from '../domain/bytes.ts'

const reader = packedReader()
const writer = byteWriter()

/** The same user in today's format. Each row comes through here once: it is written anew with the next change. */
export const fromFirstFormat = (packed: string): string => {
  reader.open(packed, 0)
  reader.varint()
  writer.varint(2)
  copy(2)
  copy(copy(1))
  // It had no computed traits.
  writer.varint(0)
  for (let left = copy(1); left > 0; left--) {
    copy(1)
    copySummary(packed)
  }
  writer.packed(packed, reader.at(), packed.length)
  return writer.take()
}

/** Copies so many numbers and returns the last one. */
const copy = (count: number): number => {
  let value = 0
  for (let left = count; left > 0; left--) {
    value = reader.varint()
    writer.varint(value)
  }
  return value
}

/** An empty one had a bucket, too; today it has none. */
const copySummary = (packed: string): void => {
  const start = reader.at()
  const length = reader.varint()
  for (let left = Math.max(1, length * 2); left > 0; left--) reader.varint()
  const head = writer.open()
  writer.packed(packed, start, length === 0 ? start + 1 : reader.at())
  writer.close(head)
}
