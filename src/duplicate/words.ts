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
  let at = 0
  // Byte by byte: a view of each digest would cost more than all else that is done with it.
  for (const digest of digests)
    for (let byte = 0; byte < wordsPerDigest * 4; byte += 4)
      words[at++] =
        ((digest[byte] as number) << 24) |
        ((digest[byte + 1] as number) << 16) |
        ((digest[byte + 2] as number) << 8) |
        (digest[byte + 3] as number)
  return words
}
