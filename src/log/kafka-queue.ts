// What was fetched from one Kafka partition and not yet handled: bounded in bytes, offsets without gaps.
import type { Batch, Recorded } from './log.ts'

export type Chunk = { readonly batch: Batch; readonly bytes: number }

export type PartitionQueue = {
  /** Takes what has room, at least one entry when empty; answers the first offset not taken. */
  offer(batch: Batch): bigint
  /** The oldest entries, at least one, up to `bytesMax`; `null` when there is nothing to hand over. */
  take(bytesMax: number): Chunk | null
  /** The chunk was handled: its bytes are free. */
  handled(chunk: Chunk): void
  /** Bytes queued or in hand. */
  bytes(): number
}

/** Offsets begin at `from`; never more than `bytesMax` in it, but for a single larger entry. */
export const partitionQueue = (from: bigint, bytesMax: number): PartitionQueue => {
  let entries: Recorded[] = []
  let bytes = 0
  let begin = from
  let end = from
  return {
    offer: (batch) => {
      const count = fitting(batch.entries, bytes === 0, bytesMax - bytes)
      const kept = batch.entries.slice(0, count)
      end = batch.entries[count]?.offset ?? batch.next
      bytes += bytesOf(kept)
      entries = entries.concat(copied(kept))
      return end
    },
    take: (chunkMax) => {
      if (begin === end) return null
      const taken = entries.slice(0, fitting(entries, true, chunkMax))
      entries = entries.slice(taken.length)
      const next = entries[0]?.offset ?? end
      const batch = { from: begin, next, entries: taken }
      begin = next
      return { batch, bytes: bytesOf(taken) }
    },
    handled: (chunk) => {
      bytes -= chunk.bytes
    },
    bytes: () => bytes,
  }
}

const bytesOf = (entries: readonly Recorded[]) =>
  entries.reduce((sum, { value }) => sum + value.byteLength, 0)

const fitting = (entries: readonly Recorded[], atLeastOne: boolean, room: number): number => {
  let left = room
  const over = entries.findIndex(({ value }, index) => {
    left -= value.byteLength
    return left < 0 && !(index === 0 && atLeastOne)
  })
  return over === -1 ? entries.length : over
}

/** One slice of a fetched value keeps the whole answer of all partitions in memory: copied, it does not. */
const copied = (entries: readonly Recorded[]): readonly Recorded[] => {
  const whole = Buffer.allocUnsafeSlow(bytesOf(entries))
  let at = 0
  return entries.map(({ offset, key, value }) => {
    whole.set(value, at)
    at += value.byteLength
    return { offset, key, value: whole.subarray(at - value.byteLength, at) }
  })
}
