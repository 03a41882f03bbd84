// Digests as four words each: how maps, filters and pages look them up, and how two are compared.

export const wordsPerDigest = 4

// biome-ignore lint/complexity/useMaxParams: two places in two arrays; called for every probe
export const isSame = (a: Uint32Array, atA: number, b: Uint32Array, atB: number) =>
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
