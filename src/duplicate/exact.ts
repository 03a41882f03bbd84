// Digest → latest receipt within one hour, exactly, in 20 bytes a slot: the part not sealed yet.

const wordsPerDigest = 4
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
        keys.set(words.subarray(at, at + wordsPerDigest), slot * wordsPerDigest)
      }
      values[slot] = Math.max(values[slot] as number, msInHour + 1)
    },
  }
}

// biome-ignore lint/complexity/useMaxParams: two places in two arrays; called for every probe
const isSame = (a: Uint32Array, atA: number, b: Uint32Array, atB: number) =>
  a[atA] === b[atB] &&
  a[atA + 1] === b[atB + 1] &&
  a[atA + 2] === b[atB + 2] &&
  a[atA + 3] === b[atB + 3]

/** The digests' words, four each: what maps, filters and pages are looked up by. */
export const wordsOf = (digests: readonly Uint8Array[]): Uint32Array => {
  const words = new Uint32Array(digests.length * wordsPerDigest)
  digests.forEach((digest, index) => {
    const view = new DataView(digest.buffer, digest.byteOffset, digest.byteLength)
    for (let word = 0; word < wordsPerDigest; word += 1)
      words[index * wordsPerDigest + word] = view.getUint32(word * 4)
  })
  return words
}
