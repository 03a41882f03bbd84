// The binary form of a user's state in ustate.st: typically a few hundred bytes, far below 2 kB.
import type { Json } from '../domain/message.ts'
import type { CountSummary } from '../domain/summary.ts'
import type { Stamp, Trait, Traits } from '../domain/traits.ts'
import { type ByteReader, type ByteWriter, byteReader, byteWriter } from './bytes.ts'
import type { PackedTraits, UserState } from './state.ts'

const format = 1

type Known = { leaf(id: number): boolean; audience(id: number): boolean }

const writer = byteWriter()

/** Leaves and audiences that are no longer known are left out: this is how dropped ones go away. */
export const packUser = (user: UserState, known: Known): Buffer => {
  writer.varint(format)
  writer.varint(user.merges)
  writer.varint(user.identities)
  packAscending(
    writer,
    user.members.filter((id) => known.audience(id)),
  )
  packSummaries(writer, summariesToPack(user.summaries, known))
  if ('packed' in user.traits) writer.bytes(user.traits.packed)
  else packTraits(writer, user.traits)
  return writer.take()
}

/** Ascending by id; they nearly always are already, and all known. */
const summariesToPack = (
  summaries: UserState['summaries'],
  known: Known,
): ReadonlyMap<number, CountSummary> => {
  let last = 0
  for (const id of summaries.keys()) {
    if (id < last || !known.leaf(id))
      return new Map([...summaries].filter(([kept]) => known.leaf(kept)).sort(([l], [r]) => l - r))
    last = id
  }
  return summaries
}

const packAscending = (to: ByteWriter, ids: readonly number[]): void => {
  to.varint(ids.length)
  let last = 0
  for (const id of ids) {
    to.varint(id - last)
    last = id
  }
}

const packSummaries = (to: ByteWriter, entries: ReadonlyMap<number, CountSummary>): void => {
  to.varint(entries.size)
  let lastId = 0
  for (const [id, { buckets, counts }] of entries) {
    to.varint(id - lastId)
    lastId = id
    to.varint(buckets.length)
    let newer = buckets[0] ?? 0
    to.varint(newer)
    for (let at = 0; at < buckets.length; at++) {
      const bucket = buckets[at] as number
      if (at > 0) to.varint(newer - bucket)
      to.varint(counts[at] as number)
      newer = bucket
    }
  }
}

/** Traits of one call share its stamp, so stamps are written once and referred to. */
const packTraits = (to: ByteWriter, traits: Traits): void => {
  const stamps = new Map<Stamp, number>()
  for (const { stamp } of traits.values()) if (!stamps.has(stamp)) stamps.set(stamp, stamps.size)
  to.varint(stamps.size)
  if (stamps.size === 0) return
  for (const { te, r, id } of stamps.keys()) {
    to.varint(te)
    to.varint(r)
    to.text(id)
  }
  to.rest(
    JSON.stringify(
      [...traits].flatMap(([key, { value, stamp }]) => [key, value, stamps.get(stamp)]),
    ),
  )
}

export type PackedUser = {
  readonly key: number
  readonly workspaceId: number
  readonly ver: number
  readonly userId: string | null
  readonly due: number
  readonly st: Buffer
}

export const unpackUser = ({ st, ...row }: PackedUser): UserState => {
  const from = byteReader(st)
  if (from.varint() !== format) throw new RangeError('a packed user has an unknown format')
  return {
    ...row,
    merges: from.varint(),
    identities: from.varint(),
    members: unpackAscending(from),
    summaries: unpackSummaries(from),
    traits: packedTraits(from.restBytes()),
    values: null,
    packedBytes: st.length,
  }
}

const unpackAscending = (from: ByteReader): readonly number[] => {
  const ids: number[] = []
  let last = 0
  for (let left = from.varint(); left > 0; left--) {
    last += from.varint()
    ids.push(last)
  }
  return ids
}

const unpackSummaries = (from: ByteReader): Map<number, CountSummary> => {
  const summaries = new Map<number, CountSummary>()
  let id = 0
  for (let left = from.varint(); left > 0; left--) {
    id += from.varint()
    const length = from.varint()
    let bucket = from.varint()
    const [buckets, counts]: [number[], number[]] = [[], []]
    for (let at = 0; at < length; at++) {
      if (at > 0) bucket -= from.varint()
      buckets.push(bucket)
      counts.push(from.varint())
    }
    summaries.set(id, { buckets, counts })
  }
  return summaries
}

const packedTraits = (packed: Buffer): PackedTraits => ({
  packed,
  unpack: () => unpackTraits(byteReader(packed)),
})

const unpackTraits = (from: ByteReader): Traits => {
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
