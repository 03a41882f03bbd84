// Which partition a key goes to: ours, so that every log adapter places alike.
// Kafka's own default (murmur2, seed 0x9747b28c, sign bit cleared; Austin Appleby, public domain), so
// that other producers writing to these topics place alike too.

export const partitionOf = (key: string, count: number): number =>
  (murmur2(Buffer.from(key, 'utf8')) & 0x7fffffff) % count

const multiplier = 0x5bd1e995

export const murmur2 = (bytes: Uint8Array): number => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const whole = bytes.length - (bytes.length % 4)
  let hash = 0x9747b28c ^ bytes.length
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(view.getInt32(at, true), multiplier)
    word ^= word >>> 24
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier)
  }
  hash = tail(hash, bytes.subarray(whole))
  hash ^= hash >>> 13
  hash = Math.imul(hash, multiplier)
  return hash ^ (hash >>> 15)
}

const tail = (hash: number, rest: Uint8Array): number => {
  if (rest.length === 0) return hash
  let mixed = hash
  rest.forEach((byte, at) => {
    mixed ^= byte << (8 * at)
  })
  return Math.imul(mixed, multiplier)
}
