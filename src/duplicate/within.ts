// Duplicates among the records of one batch.

import { isSame, wordsPerDigest } from './words.ts'

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
    const at = wordAt(index)
    let slot = (words[at + 2] as number) & mask
    while (slots[slot] !== 0 && !isSame(words, wordAt((slots[slot] as number) - 1), words, at))
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

const wordAt = (index: number): number => index * wordsPerDigest
