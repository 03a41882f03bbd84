// The ids that are suppressed, by their 128-bit hashes, in 24 bytes a place: open addressing over typed arrays.
import type { IdentityKind } from './identity.ts'
import { type SipKey, siphash } from './siphash.ts'
import { type Suspect, suppressionText } from './suppression.ts'

export type SuppressedSet = {
  readonly size: number
  /** Calls sent before `until`, epoch ms, are dropped: `Infinity` for all, `-Infinity` for none. */
  put(hash: Uint8Array, until: number): void
  /** `-Infinity` for an id that nobody put. */
  until(hash: Uint8Array): number
}

export const hashBytes = 16

/**
 * Whether what is asked about was sent before its end. Any id of a call decides: one of a deleted user must not come
 * back with somebody else's call.
 */
export const judgeOf = (set: SuppressedSet, key: SipKey): ((suspect: Suspect) => boolean) => {
  const into = { buffer: Buffer.alloc(hashBytes), at: 0 }
  const isPast = (text: string, at: number) => {
    siphash(key, text, into)
    return at < set.until(into.buffer)
  }
  return ({ workspaceId, userId, anonymousId, previousId = null, sentAt }) => {
    if (set.size === 0) return false
    const at = sentAt.getTime()
    const is = (kind: IdentityKind, value: string | null) =>
      value !== null && isPast(suppressionText(workspaceId, kind, value), at)
    return (
      is('user', userId) ||
      is('anonymous', anonymousId) ||
      is('user', previousId) ||
      is('anonymous', previousId)
    )
  }
}

const firstPlaces = 1_024
const words = 4

export const openSuppressedSet = (): SuppressedSet => {
  let places = firstPlaces
  let keys = new Int32Array(places * words)
  let values = new Float64Array(places).fill(Number.NaN)
  let size = 0
  const probe = new Int32Array(words)
  const read = (hash: Uint8Array) => {
    for (let word = 0; word < words; word++) {
      const at = word * 4
      probe[word] =
        (hash[at] as number) |
        ((hash[at + 1] as number) << 8) |
        ((hash[at + 2] as number) << 16) |
        ((hash[at + 3] as number) << 24)
    }
  }
  const isAt = (place: number): boolean => {
    for (let word = 0; word < words; word++)
      if (keys[place * words + word] !== probe[word]) return false
    return true
  }
  /** Of the id in `probe`, or the free one where it would go: half of all are free. */
  const placeOf = (): number => {
    let place = (probe[0] as number) & (places - 1)
    while (!Number.isNaN(values[place]) && !isAt(place)) place = (place + 1) & (places - 1)
    return place
  }
  const store = (until: number) => {
    const place = placeOf()
    if (Number.isNaN(values[place])) size += 1
    keys.set(probe, place * words)
    values[place] = until
  }
  const grow = () => {
    const [oldKeys, oldValues] = [keys, values]
    places *= 2
    size = 0
    keys = new Int32Array(places * words)
    values = new Float64Array(places).fill(Number.NaN)
    for (const [place, until] of oldValues.entries()) {
      if (Number.isNaN(until)) continue
      probe.set(oldKeys.subarray(place * words, place * words + words))
      store(until)
    }
  }
  return {
    get size() {
      return size
    },
    put: (hash, until) => {
      if ((size + 1) * 2 > places) grow()
      read(hash)
      store(until)
    },
    until: (hash) => {
      read(hash)
      const until = values[placeOf()] as number
      return Number.isNaN(until) ? Number.NEGATIVE_INFINITY : until
    },
  }
}
