// Reading the parts of a packed user where they stand, so that only what a call needs is decoded.

import type { CountSummary } from '../domain/condition/summary.ts'
import type { Json } from '../domain/message.ts'
import type { Stamp, Trait, Traits } from '../domain/traits.ts'
import { byteReader, type PackedReader, packedReader } from './bytes.ts'

const reader = packedReader()

/** `undefined` where there is none; ids ascend, so the search ends early. */
export const unpackSummary = (
  packed: string,
  at: number,
  leafId: number,
): CountSummary | undefined => {
  reader.open(packed, at)
  let id = 0
  for (let left = reader.varint(); left > 0; left--) {
    id += reader.varint()
    if (id === leafId) return readSummary(reader)
    if (id > leafId) return undefined
    skipSummary(reader)
  }
  return undefined
}

export const unpackSummaries = (packed: string, at: number): Map<number, CountSummary> => {
  const summaries = new Map<number, CountSummary>()
  reader.open(packed, at)
  let id = 0
  for (let left = reader.varint(); left > 0; left--) {
    id += reader.varint()
    summaries.set(id, readSummary(reader))
  }
  return summaries
}

/** A length, the newest bucket and its count, then for each older one how much older, and its count. */
const readSummary = (from: PackedReader): CountSummary => {
  const length = from.varint()
  let bucket = from.varint()
  const buckets: number[] = []
  const counts: number[] = []
  for (let at = 0; at < length; at++) {
    if (at > 0) bucket -= from.varint()
    buckets.push(bucket)
    counts.push(from.varint())
  }
  return { buckets, counts }
}

/** An empty one has a bucket, too. */
export const skipSummary = (from: PackedReader): void => from.skip(Math.max(1, from.varint() * 2))

export const unpackTraits = (packed: string, at: number): Traits => {
  const from = byteReader(Buffer.from(packed.slice(at), 'latin1'))
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
