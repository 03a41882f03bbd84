// HMAC-SHA1 of one secret over many messages: hashed in one shot twice, which costs half of what a new HMAC does.
import { createHmac, hash } from 'node:crypto'

const blockBytes = 64
const digestBytes = 20
/** Longer ones are rare, and what a HMAC costs to make does not matter to them. */
const messageBytesMax = 32_768
const secretsMax = 1_000

/** The secret's two pads, each with room for what is hashed behind it. */
type Pads = { readonly inner: Buffer; readonly outer: Buffer }

const known = new Map<string, Pads>()
const scratch = Buffer.alloc(blockBytes + messageBytesMax)

/** Lowercase hexadecimal digits. */
export const hmacSha1 = (secret: string, bytes: Uint8Array): string => {
  if (bytes.length > messageBytesMax) return createHmac('sha1', secret).update(bytes).digest('hex')
  const { inner, outer } = padsOf(secret)
  scratch.set(inner)
  scratch.set(bytes, blockBytes)
  // Its bytes as characters: cheaper than a buffer of their own.
  const digest = hash('sha1', scratch.subarray(0, blockBytes + bytes.length), 'binary')
  outer.write(digest, blockBytes, 'binary')
  return hash('sha1', outer, 'hex')
}

const padsOf = (secret: string): Pads => {
  const pads = known.get(secret)
  if (pads) return pads
  const given = Buffer.from(secret)
  const key = given.length > blockBytes ? hash('sha1', given, 'buffer') : given
  const inner = Buffer.alloc(blockBytes, 0x36)
  const outer = Buffer.alloc(blockBytes + digestBytes, 0x5c)
  for (const [at, byte] of key.entries()) {
    inner[at] = byte ^ 0x36
    outer[at] = byte ^ 0x5c
  }
  // Secrets that were replaced are not kept for ever.
  if (known.size >= secretsMax) known.clear()
  const made = { inner, outer }
  known.set(secret, made)
  return made
}
