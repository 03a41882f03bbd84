// The webhook signature: what a receiver with the shared secret recomputes over the bytes it got.
import { createHmac } from 'node:crypto'

/** Lowercase hex HMAC-SHA1 over the very bytes sent. */
export const sign = (secret: string, bytes: Uint8Array): string =>
  createHmac('sha1', secret).update(bytes).digest('hex')
