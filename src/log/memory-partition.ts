// One partition of the memory log: its entries, and who waits for more.
import type { Batch, Recorded } from './log.ts'

type Stored = Recorded & { readonly at: number }

export type MemoryPartition = {
  start: bigint
  end: bigint
  entries: Stored[]
  /** Called, each once per append, when there is more to read. */
  readonly waiting: Set<() => void>
}

export const memoryPartition = (): MemoryPartition => ({
  start: 0n,
  end: 0n,
  entries: [],
  waiting: new Set(),
})

export const store = (
  partition: MemoryPartition,
  entry: { readonly key: string; readonly value: Uint8Array; readonly at: number },
): bigint => {
  const offset = partition.end++
  partition.entries.push({ ...entry, offset })
  for (const wake of [...partition.waiting]) wake()
  return offset
}

type Slice = { readonly from: bigint; readonly until: bigint | null; readonly bytesMax: number }

/** What can be read from `from` on, `null` when nothing can; one entry at least, however large. */
export const batchFrom = (partition: MemoryPartition, slice: Slice): Batch | null => {
  const { from, bytesMax } = slice
  const end = slice.until !== null && slice.until < partition.end ? slice.until : partition.end
  if (from >= end) return null
  const entries: Recorded[] = []
  let bytes = 0
  for (let index = indexOf(partition, from); index < partition.entries.length; index++) {
    const { offset, key, value } = partition.entries[index] as Stored
    if (offset >= end) break
    bytes += value.byteLength
    if (entries.length > 0 && bytes > bytesMax) return { from, next: offset, entries }
    entries.push({ offset, key, value })
  }
  return { from, next: end, entries }
}

/** The first offset stored at or after the instant, or the end. */
export const offsetAt = (partition: MemoryPartition, at: number): bigint =>
  partition.entries.find((entry) => entry.at >= at)?.offset ?? partition.end

/** The index of the first entry at or after the offset. */
const indexOf = ({ entries }: MemoryPartition, offset: bigint): number => {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((entries[middle] as Stored).offset < offset) low = middle + 1
    else high = middle
  }
  return low
}
