// Meters a batch: how many calls of which source, type and day, and which ids are new to their month.

import { type CallType, callTypes, type Message } from '../domain/message.ts'
import type { SipKey } from '../domain/siphash.ts'
import { dayOf, eachSighting, entriesOf, monthOf, type Sighting } from '../domain/usage.ts'
import type { Call } from './call.ts'
import type { TextCache } from './text-cache.ts'

/** An id not known to be stored for its month. */
export type Sighted = Sighting & { readonly workspaceId: number; readonly month: number }

/** Month and kind of the last sighting stored of each id: a hint that saves work, never a count. */
export type StoredSightings = TextCache

const none: readonly Sighted[] = []

export const unmetered = (): readonly Sighted[] => none

/** For the calls of one batch, ahead of its transaction: duplicates are not known yet. */
export const sightingLook = (stored: StoredSightings) => {
  const met = new Map<string, Sighted>()
  const months = monthsOf()
  return (message: Message): readonly Sighted[] => {
    let unknown: Sighted[] | null = null
    const month = months(message.receivedAt)
    eachSighting(message, (kind, text) => {
      const known = stored.get(text)
      if (known !== undefined && known >> 2 === month && (known & 3) >= kind) return
      let seen = met.get(text)
      if (seen === undefined || seen.month !== month || seen.kind !== kind) {
        seen = { workspaceId: message.workspaceId, month, kind, text }
        met.set(text, seen)
      }
      if (unknown === null) unknown = [seen]
      else unknown.push(seen)
    })
    return unknown ?? none
  }
}

/** Most calls are of the day of the call before. */
const monthsOf = () => {
  let day = Number.NaN
  let month = 0
  return (at: number): number => {
    if (dayOf(at) !== day) {
      day = dayOf(at)
      month = monthOf(at)
    }
    return month
  }
}

export type CallsMetered = {
  readonly workspaceId: number
  readonly sourceId: number
  readonly day: number
  readonly type: CallType
  readonly calls: number
}

export type EntriesMetered = {
  readonly workspaceId: number
  readonly month: number
  readonly entries: Uint8Array
}

export type Metered = {
  readonly calls: readonly CallsMetered[]
  readonly entries: readonly EntriesMetered[]
  /** What `entries` hold, to be remembered once they are stored. */
  readonly sighted: ReadonlySet<Sighted>
}

type Metering = { readonly key: SipKey }

/** What the calls given add, which are no duplicates. */
export const meterBatch = (
  placed: readonly { readonly call: Call; readonly message: Message }[],
  { key }: Metering,
): Metered => {
  const calls = new Map<number, { -readonly [K in keyof CallsMetered]: CallsMetered[K] }>()
  const seen = new Set<Sighted>()
  for (const { call, message } of placed) {
    if (message.type === 'delete') continue
    const { workspaceId, sourceId, type } = message
    const day = dayOf(message.receivedAt)
    // One number below 2^53 for all three: a text for each call would cost more than the rest.
    const name = (sourceId * 8 + callTypes.indexOf(type)) * 65_536 + day
    const held = calls.get(name)
    if (held === undefined) calls.set(name, { workspaceId, sourceId, day, type, calls: 1 })
    else held.calls += 1
    for (const each of call.sighted) seen.add(each)
  }
  const byMonth = Map.groupBy(seen, ({ workspaceId, month }) => workspaceId * 65_536 + month)
  return {
    calls: [...calls.values()],
    entries: [...byMonth.values()].map((all) => {
      const { workspaceId, month } = all[0] as Sighted
      return { workspaceId, month, entries: entriesOf(key, all) }
    }),
    sighted: seen,
  }
}

/** After the commit. */
export const rememberSightings = (stored: StoredSightings, { sighted }: Metered): void => {
  for (const { text, month, kind } of sighted) stored.set(text, month * 4 + kind)
}
