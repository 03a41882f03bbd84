// What is metered of a call: whom it shows to have been seen in its month, as entries of 16 bytes that
// can be repeated, reordered and united at will. Pure.
import { hash } from 'node:crypto'
import { isBlocked } from './identity.ts'
import type { Message } from './message.ts'
import { type SipKey, siphash, sipKeyOf } from './siphash.ts'

/** Months since January 1970, UTC. */
export const monthOf = (at: number): number => {
  const date = new Date(at)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

/** `2026-11` */
export const monthName = (month: number): string =>
  `${1970 + Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, '0')}`

export const dayMs = 86_400_000

/** Days since 1970-01-01, UTC. */
export const dayOf = (at: number): number => Math.floor(at / dayMs)

/** `2026-11-21` */
export const dayName = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10)

/**
 * Of two entries of one id the higher is the truth: an anonymous id that was ever tied to a user id
 * counts no more. User ids and anonymous ids never share an entry.
 */
export const sightings = { user: 0, anonymous: 1, tied: 2 } as const

export type SightingKind = (typeof sightings)[keyof typeof sightings]

export type Sighting = {
  readonly kind: SightingKind
  /** The id with its workspace, for maps and hashing. */
  readonly text: string
}

type Call = Pick<Message, 'type' | 'workspaceId' | 'userId' | 'anonymousId' | 'previousId'>

/** Ids that name nobody are nobody's, and whoever asks to be deleted was not seen by that. */
export const eachSighting = (call: Call, see: (kind: SightingKind, text: string) => void): void => {
  const { type, workspaceId, userId, anonymousId, previousId } = call
  if (type === 'delete') return
  const isUser = userId !== null && !isBlocked(userId)
  if (isUser) see(sightings.user, `${workspaceId}:0:${userId}`)
  if (anonymousId !== null && !isBlocked(anonymousId))
    see(isUser ? sightings.tied : sightings.anonymous, `${workspaceId}:1:${anonymousId}`)
  if (type === 'alias' && isUser && previousId !== null && !isBlocked(previousId))
    see(sightings.tied, `${workspaceId}:1:${previousId}`)
}

export const entryBytes = 16

export const usageKeyOf = (text: string): SipKey => sipKeyOf(hash('sha256', text, 'buffer'))

/** An entry each, one after the other: 126 bits under the installation's key, and the kind in the lowest two. */
export const entriesOf = (key: SipKey, seen: readonly Sighting[]): Buffer => {
  const into = { buffer: Buffer.alloc(seen.length * entryBytes), at: 0 }
  for (const { kind, text } of seen) {
    siphash(key, text, into)
    into.at += entryBytes
    const last = into.at - 1
    into.buffer[last] = ((into.buffer[last] as number) & 0xfc) | kind
  }
  return into.buffer
}

export type Tracked = { readonly userIds: number; readonly anonymousIds: number }

export type United = Tracked & { readonly entries: Buffer }

/** Each id once, in the order of entries, and how many of them are tracked. */
export const unite = (parts: readonly Uint8Array[]): United => {
  const words = wordsOf(parts)
  const order = Array.from({ length: words.length / 4 }, (_, at) => at * 4)
  order.sort((left, right) => compare(words, left, right))
  const kept = new Uint32Array(words.length)
  let length = 0
  const counts: [number, number, number] = [0, 0, 0]
  for (const [index, at] of order.entries()) {
    const next = order[index + 1]
    // The kind is lowest, so the last of an id's entries is the one that holds.
    if (next !== undefined && isSameId(words, at, next)) continue
    for (let word = 0; word < 4; word++) kept[length++] = words[at + word] as number
    counts[((words[at + 3] as number) & 3) as SightingKind] += 1
  }
  const entries = Buffer.from(kept.buffer, 0, length * 4).swap32()
  return { entries, userIds: counts[sightings.user], anonymousIds: counts[sightings.anonymous] }
}

/** Each entry as four numbers that compare as its bytes do. */
const wordsOf = (parts: readonly Uint8Array[]): Uint32Array => {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  Buffer.from(bytes.buffer).swap32()
  return new Uint32Array(bytes.buffer)
}

const compare = (words: Uint32Array, left: number, right: number): number => {
  for (let word = 0; word < 4; word++) {
    const difference = (words[left + word] as number) - (words[right + word] as number)
    if (difference !== 0) return difference
  }
  return 0
}

const isSameId = (words: Uint32Array, left: number, right: number): boolean =>
  words[left] === words[right] &&
  words[left + 1] === words[right + 1] &&
  words[left + 2] === words[right + 2] &&
  (words[left + 3] as number) >>> 2 === (words[right + 3] as number) >>> 2

/** By page, the first byte: what one page holds of the entries given. */
export const byPage = (entries: Uint8Array): ReadonlyMap<number, readonly Uint8Array[]> => {
  const pages = new Map<number, Uint8Array[]>()
  for (let at = 0; at < entries.length; at += entryBytes) {
    const page = entries[at] as number
    const held = pages.get(page)
    const entry = entries.subarray(at, at + entryBytes)
    if (held) held.push(entry)
    else pages.set(page, [entry])
  }
  return pages
}
