// Digest → latest receipt within one hour, exactly, in 20 bytes a slot: the part not sealed yet.

import { isSame, wordsPerDigest } from './words.ts'

const slotBytes = wordsPerDigest * 4 + 4
const slotsMin = 256
const loadMax = 0.7

export type Exact = {
  size(): number
  bytes(): number
  /** What it would take with this many more. */
  bytesWith(more: number): number
  /** Milliseconds in the hour, or -1. The digest is the four words at `at`. */
  latest(words: Uint32Array, at: number): number
  /** Keeps the later of the two receipts. */
  put(words: Uint32Array, at: number, msInHour: number): void
}

export const openExact = (): Exact => {
  let keys = new Uint32Array(slotsMin * wordsPerDigest)
  // One more than the milliseconds: zero is an empty slot.
  let values = new Uint32Array(slotsMin)
  let size = 0
  const slotOf = (words: Uint32Array, at: number) => {
    const mask = values.length - 1
    // The third word: the first two choose pages and Bloom bits.
    let slot = (words[at + 2] as number) & mask
    while (values[slot] !== 0 && !isSame(keys, slot * wordsPerDigest, words, at))
      slot = (slot + 1) & mask
    return slot
  }
  const grow = () => {
    const [oldKeys, oldValues] = [keys, values]
    keys = new Uint32Array(oldKeys.length * 2)
    values = new Uint32Array(oldValues.length * 2)
    for (let slot = 0; slot < oldValues.length; slot += 1) {
      if (oldValues[slot] === 0) continue
      const to = slotOf(oldKeys, slot * wordsPerDigest)
      keys.set(oldKeys.subarray(slot * wordsPerDigest, (slot + 1) * wordsPerDigest), to * 4)
      values[to] = oldValues[slot] as number
    }
  }
  return {
    size: () => size,
    bytes: () => values.length * slotBytes,
    bytesWith: (more) => {
      let slots = values.length
      while (size + more > slots * loadMax) slots *= 2
      return slots * slotBytes
    },
    latest: (words, at) => (values[slotOf(words, at)] as number) - 1,
    put: (words, at, msInHour) => {
      if (size + 1 > values.length * loadMax) grow()
      const slot = slotOf(words, at)
      if (values[slot] === 0) {
        size += 1
        for (let word = 0; word < wordsPerDigest; word++)
          keys[slot * wordsPerDigest + word] = words[at + word] as number
      }
      values[slot] = Math.max(values[slot] as number, msInHour + 1)
    },
  }
}
