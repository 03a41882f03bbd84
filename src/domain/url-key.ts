// What stands for a URL where tables are looked up by it: no index takes a row of any length.
import { createHash } from 'node:crypto'

/** As long as a URL may be that is saved; some that were saved before that was checked are longer. */
export const urlBytesMax = 2_048

/** Of what is a key already it is the same. */
export const urlKey = (url: string): string =>
  Buffer.byteLength(url) <= urlBytesMax
    ? url
    : `sha256:${createHash('sha256').update(url).digest('hex')}`
