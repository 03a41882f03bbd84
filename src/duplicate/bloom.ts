// A Bloom filter of 16 bits an id over digests, which are uniform already and serve as their own hashes.

const bitsPerId = 16
/** 0.06 % of strangers pass at 16 bits an id; more probes gain little and cost a cache miss each. */
const probes = 8

/** Grows in steps of a byte; never empty, so that a modulus exists. */
export const emptyBloom = (ids: number): Uint8Array =>
  new Uint8Array(Math.max(8, Math.ceil((ids * bitsPerId) / 8)))

export const addToBloom = (bloom: Uint8Array, firstWord: number, secondWord: number): void => {
  const bits = bloom.length * 8
  for (let probe = 0; probe < probes; probe += 1) {
    const bit = bitOf(firstWord, secondWord, probe) % bits
    bloom[bit >>> 3] = (bloom[bit >>> 3] as number) | (1 << (bit & 7))
  }
}

export const isInBloom = (bloom: Uint8Array, firstWord: number, secondWord: number): boolean => {
  const bits = bloom.length * 8
  for (let probe = 0; probe < probes; probe += 1) {
    const bit = bitOf(firstWord, secondWord, probe) % bits
    if (((bloom[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false
  }
  return true
}

const bitOf = (firstWord: number, secondWord: number, probe: number) =>
  (firstWord + Math.imul(probe, secondWord | 1)) >>> 0
