// Entries outside the heap: of a million objects on it, the collector would walk each whenever it collects.

/** Places are where an entry's own bytes begin in `buffer`, always a multiple of 8. */
export type Ring = {
  readonly buffer: ArrayBuffer
  /** The place of the entry of that hash that `is` says yes to; -1 for none. */
  find(hash: number, is: (place: number) => boolean): number
  /** Room for an entry that is not in it yet, the oldest being forgotten for it; -1 where there is none. */
  add(hash: number, bytes: number): number
  remove(place: number): void
  /** Whether it belongs to the half that is forgotten next. */
  isOld(place: number): boolean
}

type Options = {
  /** Of all of it. */
  readonly bytesMax: number
  /** That an entry usually takes, or less: where most take less, the oldest half is forgotten sooner. */
  readonly entryBytes: number
}

/** Before each entry: its bytes with these, negative once it was removed; then its hash. */
const headBytes = 8
const none = -1

/** Entries stand one after the other in a ring of bytes, and a table leads to them. */
export const openRing = ({ bytesMax, entryBytes }: Options): Ring => {
  const entries = bytesMax / (entryBytes + 2 * slotBytes)
  // Never is each of them taken.
  const slotCount = 2 ** Math.ceil(Math.log2(Math.max(4, entries * 2)))
  const size = Math.max(0, Math.floor((bytesMax - slotCount * slotBytes) / 8) * 8)
  const buffer = new ArrayBuffer(size)
  const words = new Int32Array(buffer)
  const table = openTable(slotCount)
  // Both only grow: what stands from one to the other is in use.
  let [oldest, next] = [0, 0]
  const forgetOldest = (): void => {
    const start = oldest % size
    const bytes = words[start >> 2] as number
    if (bytes > 0) table.remove(words[(start >> 2) + 1] as number, start)
    oldest += Math.abs(bytes)
  }
  const take = (bytes: number): number => {
    while (next + bytes - oldest > size) forgetOldest()
    const start = next % size
    // Nobody's until it is in the table.
    words[start >> 2] = -bytes
    next += bytes
    return start
  }
  return {
    buffer,
    find: (hash, is) => table.find(hash, is),
    add: (hash, bytes) => {
      const whole = Math.ceil((headBytes + bytes) / 8) * 8
      // A few entries so large would leave room for nothing else.
      if (whole > size / 4) return none
      while (table.isFull()) forgetOldest()
      const rest = size - (next % size)
      // No entry is cut in two.
      if (rest < whole) take(rest)
      const start = take(whole)
      if (!table.add(hash, start)) return none
      words[start >> 2] = whole
      words[(start >> 2) + 1] = hash
      return start + headBytes
    },
    remove: (place) => {
      const start = place - headBytes
      table.remove(words[(start >> 2) + 1] as number, start)
      words[start >> 2] = -(words[start >> 2] as number)
    },
    isOld: (place) => (place - headBytes - (oldest % size) + size) % size < size / 2,
  }
}

type Table = {
  find(hash: number, is: (place: number) => boolean): number
  /** `false` when it would stand too far from where it is looked for. */
  add(hash: number, start: number): boolean
  remove(hash: number, start: number): void
  isFull(): boolean
}

const slotBytes = 8
/** Fuller, what is looked for would stand too far off too often. */
const fullAt = 0.6
const stepsMax = 128

/**
 * Where entries start, by their hash: open addressing with linear probing and backward shifts (Knuth, The Art of
 * Computer Programming 6.4, algorithms L and R). Whoever chooses what is hashed cannot make a search long.
 */
const openTable = (slotCount: number): Table => {
  // Where it starts, in units of eight bytes and from 1 on, since 0 is free; and its hash, so that others are
  // passed over without a look at them.
  const slots = new Int32Array(slotCount * 2)
  const mask = slots.length - 1
  let count = 0
  const homeOf = (hash: number) => (hash << 1) & mask
  const indexOf = (hash: number, start: number): number => {
    const unit = start / 8 + 1
    for (let at = homeOf(hash), step = 0; step < stepsMax; step++, at = (at + 2) & mask) {
      if (slots[at] === unit) return at
      if (slots[at] === 0) return none
    }
    return none
  }
  return {
    find: (hash, is) => {
      for (let at = homeOf(hash), step = 0; step < stepsMax; step++, at = (at + 2) & mask) {
        const unit = slots[at] as number
        if (unit === 0) return none
        if (slots[at + 1] !== hash) continue
        const place = (unit - 1) * 8 + headBytes
        if (is(place)) return place
      }
      return none
    },
    add: (hash, start) => {
      for (let at = homeOf(hash), step = 0; step < stepsMax; step++, at = (at + 2) & mask) {
        if (slots[at] !== 0) continue
        slots[at] = start / 8 + 1
        slots[at + 1] = hash
        count += 1
        return true
      }
      return false
    },
    remove: (hash, start) => {
      let hole = indexOf(hash, start)
      if (hole === none) return
      for (let at = (hole + 2) & mask; slots[at] !== 0; at = (at + 2) & mask) {
        const home = homeOf(slots[at + 1] as number)
        if (((at - home) & mask) < ((at - hole) & mask)) continue
        slots[hole] = slots[at] as number
        slots[hole + 1] = slots[at + 1] as number
        hole = at
      }
      slots[hole] = 0
      count -= 1
    },
    isFull: () => count >= slotCount * fullAt,
  }
}
