// Duplicates among the records of one batch.

const wordsPerDigest = 4

type Batch = {
  /** The digests' words, four each. */
  readonly words: Uint32Array
  /** By index, epoch ms. */
  readonly receipts: Float64Array
  /** By index: where the window begins in which an earlier receipt makes the record a duplicate. */
  readonly starts: readonly number[]
}

/**
 * Marks by index who has an earlier record of the same digest in the batch, received in their window. An open-addressing
 * table of indices: a text for each digest would cost more than all else that is judged of it.
 */
export const markWithin = ({ words, receipts, starts }: Batch, duplicate: boolean[]): void => {
  const count = starts.length
  // Half full at most. One more than an index: zero is an empty slot.
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(count * 2 + 1)))
  const mask = slots.length - 1
  /** By the index of the first record of a digest. */
  const latest = receipts.slice()
  for (let index = 0; index < count; index += 1) {
    // The third word, as the exact maps do: digests are uniform in every one.
    let slot = (words[index * wordsPerDigest + 2] as number) & mask
    while (slots[slot] !== 0 && !isSame(words, (slots[slot] as number) - 1, index))
      slot = (slot + 1) & mask
    if (slots[slot] === 0) {
      slots[slot] = index + 1
      continue
    }
    const first = (slots[slot] as number) - 1
    const before = latest[first] as number
    if (before >= (starts[index] as number)) duplicate[index] = true
    latest[first] = Math.max(before, receipts[index] as number)
  }
}

const isSame = (words: Uint32Array, left: number, right: number): boolean => {
  const [a, b] = [left * wordsPerDigest, right * wordsPerDigest]
  return (
    words[a] === words[b] &&
    words[a + 1] === words[b + 1] &&
    words[a + 2] === words[b + 2] &&
    words[a + 3] === words[b + 3]
  )
}
