// Reading the parts of a packed user where they stand, so that only what a call needs is decoded.

import { type PackedReader, packedReader } from '../domain/bytes.ts'
import type { Kind, Summary } from '../domain/condition/summary/kind.ts'
import type { Json } from '../domain/message.ts'
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

/** `undefined` where there is none; ids ascend, so the search ends early. */
export const readLeaf = (packed: string, at: number, leaf: Leaf): Summary | undefined => {
  reader.open(packed, at)
  let id = 0
  for (let left = reader.varint(); left > 0; left--) {
    id += reader.varint()
    const length = reader.varint()
    if (id === leaf.id) return leaf.kind.read(reader)
    if (id > leaf.id) return undefined
    reader.skip(length)
  }
  return undefined
}

/** The ids of the leaves something is kept of. */
export const readLeaves = (packed: string, at: number): readonly number[] => {
  const ids: number[] = []
  reader.open(packed, at)
  eachSummary(reader, (id) => ids.push(id))
  return ids
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
