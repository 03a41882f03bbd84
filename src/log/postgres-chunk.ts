// How entries lie in the chunks of the Postgres log: packed on append, unpacked on read. Pure.
import { partitionOf } from '../domain/partition.ts'
import { type Entry, placeOf, type Recorded, type Topic } from './log.ts'

/** Small enough that a reader with little memory can take one per partition at a time. */
export const chunkBytesMax = 16_384

const headBytes = 8

export type Appending = { readonly topic: Topic; readonly entries: readonly Entry[] }

/** Where a chunk lies in the packed bytes, and where its entries lie in their partition's. */
export type PackedChunk = {
  readonly topic: Topic
  readonly partition: number
  readonly before: number
  readonly entries: number
  readonly at: number
  readonly size: number
}

/** The place of an entry among all that this append gives its partition. */
export type Slot = { readonly topic: Topic; readonly partition: number; readonly index: number }

export type Packed = {
  readonly bytes: Buffer
  readonly chunks: readonly PackedChunk[]
  /** By partition, how many entries it gets. */
  readonly counts: readonly {
    readonly topic: Topic
    readonly partition: number
    readonly entries: number
  }[]
  /** By append, by entry. */
  readonly slots: readonly (readonly Slot[])[]
}

export const sizeOf = ({ key, value }: Entry) =>
  headBytes + Buffer.byteLength(key) + value.byteLength

type Bin = { readonly topic: Topic; readonly partition: number; readonly entries: Entry[] }

export const pack = (
  appends: readonly Appending[],
  partitions: Readonly<Record<Topic, number>>,
): Packed => {
  const bins = new Map<string, Bin>()
  const slots = appends.map(({ topic, entries }) =>
    entries.map((entry): Slot => {
      const partition = partitionOf(entry.key, partitions[topic])
      const place = placeOf({ topic, partition })
      const bin = bins.get(place) ?? { topic, partition, entries: [] }
      bins.set(place, bin)
      return { topic, partition, index: bin.entries.push(entry) - 1 }
    }),
  )
  const total = [...bins.values()].reduce(
    (sum, bin) => bin.entries.reduce((bytes, entry) => bytes + sizeOf(entry), sum),
    0,
  )
  const bytes = Buffer.allocUnsafe(total)
  const chunks: PackedChunk[] = []
  let at = 0
  for (const bin of bins.values()) at = packBin(bin, { bytes, at, chunks })
  const counts = [...bins.values()].map(({ topic, partition, entries }) => {
    return { topic, partition, entries: entries.length }
  })
  return { bytes, chunks, counts, slots }
}

type Target = { readonly bytes: Buffer; readonly at: number; readonly chunks: PackedChunk[] }

const packBin = ({ topic, partition, entries }: Bin, { bytes, at: begin, chunks }: Target) => {
  let at = begin
  let start = begin
  let before = 0
  const close = (until: number) => {
    if (until === before) return
    chunks.push({ topic, partition, before, entries: until - before, at: start, size: at - start })
    before = until
    start = at
  }
  entries.forEach((entry, index) => {
    if (at + sizeOf(entry) - start > chunkBytesMax) close(index)
    at = packEntry(bytes, at, entry)
  })
  close(entries.length)
  return at
}

const packEntry = (bytes: Buffer, at: number, { key, value }: Entry): number => {
  const keyBytes = bytes.write(key, at + headBytes)
  bytes.writeUInt32BE(keyBytes, at)
  bytes.writeUInt32BE(value.byteLength, at + 4)
  bytes.set(value, at + headBytes + keyBytes)
  return at + headBytes + keyBytes + value.byteLength
}

export type Chunk = { readonly first: bigint; readonly next: bigint; readonly payload: Buffer }

/** The chunk's entries with offsets in [from, until); values are views of the payload. */
export const unpack = (
  { first, payload }: Chunk,
  { from, until }: { readonly from: bigint; readonly until: bigint },
): Recorded[] => {
  const entries: Recorded[] = []
  let offset = first
  for (let at = 0; at < payload.length && offset < until; offset++) {
    const keyEnd = at + headBytes + payload.readUInt32BE(at)
    const end = keyEnd + payload.readUInt32BE(at + 4)
    if (offset >= from)
      entries.push({
        offset,
        key: payload.toString('utf8', at + headBytes, keyEnd),
        value: payload.subarray(keyEnd, end),
      })
    at = end
  }
  return entries
}
