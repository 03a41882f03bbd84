// Reading the parts of a packed user where they stand, so that only what a call needs is decoded.

import { type PackedReader, packedReader } from '../domain/bytes.ts'
import type { Kind, Summary } from '../domain/condition/summary/kind.ts'
import type { Json, JsonObject } from '../domain/message.ts'
import type { Stamp, Trait, Traits } from '../domain/traits.ts'

const reader = packedReader()

/** Walks summaries as they stand: each an id (less the one before), its length in bytes, and itself. */
export const eachSummary = (
  from: PackedReader,
  seen: (id: number, start: number, end: number) => void,
): void => {
  let id = 0
  for (let left = from.varint(); left > 0; left--) {
    id += from.varint()
    const length = from.varint()
    const start = from.at()
    from.skip(length)
    seen(id, start, start + length)
  }
}

type Leaf = { readonly id: number; readonly kind: Kind<Summary> }

/** The summaries of one packed user: what stands where, and what was read of it. */
export type Places = {
  packed: string
  at: number
  /** Where the first one's head stands. */
  first: number
  /** Ascending; of the arrays only so many entries count. */
  count: number
  readonly ids: number[]
  readonly starts: number[]
  readonly ends: number[]
  readonly kinds: (Kind<Summary> | null)[]
  readonly summaries: Summary[]
}

/** Of the user at hand alone: one call asks for several, and so does one look. */
const places: Places = {
  ...{ packed: '', at: -1, first: 0, count: 0 },
  ...{ ids: [], starts: [], ends: [], kinds: [], summaries: [] },
}

/** Valid until it is asked for another user. */
export const placesOf = (packed: string, at: number): Places => {
  if (places.at === at && places.packed === packed) return places
  // Whatever is cut stays unknown.
  places.at = -1
  reader.open(packed, at)
  let left = reader.varint()
  places.first = reader.at()
  let count = 0
  let id = 0
  for (; left > 0; left--) {
    id += reader.varint()
    const length = reader.varint()
    places.ids[count] = id
    places.starts[count] = reader.at()
    reader.skip(length)
    places.ends[count] = reader.at()
    places.kinds[count] = null
    count += 1
  }
  places.packed = packed
  places.at = at
  places.count = count
  return places
}

/** `undefined` where there is none; ids ascend, so the search ends early. */
export const readLeaf = (packed: string, at: number, { id, kind }: Leaf): Summary | undefined => {
  const { count, ids, starts, kinds, summaries } = placesOf(packed, at)
  let place = 0
  while (place < count && (ids[place] as number) < id) place++
  if (place === count || ids[place] !== id) return undefined
  if (kinds[place] !== kind) {
    reader.open(packed, starts[place] as number)
    summaries[place] = kind.read(reader)
    kinds[place] = kind
  }
  return summaries[place]
}

/** The ids of the leaves something is kept of. */
export const readLeaves = (packed: string, at: number): readonly number[] => {
  const { count, ids } = placesOf(packed, at)
  return ids.slice(0, count)
}

export const unpackTraits = (packed: string, at: number): Traits => {
  const from = packedReader()
  from.open(packed, at)
  const stamps: Stamp[] = []
  for (let left = from.varint(); left > 0; left--)
    stamps.push({ te: from.varint(), r: from.varint(), id: from.text() })
  const traits = new Map<string, Trait>()
  if (stamps.length === 0) return traits
  const flat = JSON.parse(from.rest()) as Json[]
  for (let at = 0; at < flat.length; at += 3)
    traits.set(flat[at] as string, {
      value: flat[at + 1] as Json,
      stamp: stamps[flat[at + 2] as number] as Stamp,
    })
  return traits
}

/** As conditions see them: without when they were said, and without deleted ones. */
export const unpackTraitValues = (packed: string, at: number): JsonObject => {
  reader.open(packed, at)
  const stamps = reader.varint()
  if (stamps === 0) return {}
  for (let left = stamps; left > 0; left--) {
    reader.varint()
    reader.varint()
    reader.skip(reader.varint())
  }
  const flat = JSON.parse(reader.rest()) as Json[]
  const entries: [string, Json][] = []
  for (let at = 0; at < flat.length; at += 3) {
    const value = flat[at + 1] as Json
    if (value !== null) entries.push([flat[at] as string, value])
  }
  return Object.fromEntries(entries)
}
