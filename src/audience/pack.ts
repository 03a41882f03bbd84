// The binary form of a user's state in ustate.st: typically a few hundred bytes, far below 2 kB.
import { type ByteWriter, byteWriter, packedReader } from '../domain/bytes.ts'
import type { Stamp, Traits } from '../domain/traits.ts'
import type { Known } from './plan.ts'
import type { Folded, UserState } from './state.ts'
import { eachSummary, type Places, placesOf } from './unpack.ts'
import { fromFirstFormat } from './upgrade.ts'

const format = 3
/** Knew nothing of the sources that had seen the user. */
const withoutSources = 2
const unknownSources: readonly number[] = [0]

const writer = byteWriter()
const reader = packedReader()

export const packUser = (user: UserState, known: Known): Buffer => {
  repack(user, known)
  return Buffer.from(user.packed, 'latin1')
}

/**
 * Makes `packed` say all that the user is. Leaves and audiences that are no longer known are left out:
 * this is how dropped ones go away.
 */
export const repack = (user: UserState, known: Known): void => {
  const isReady = isPacked(user, known)
  user.packing = null
  if (isReady) return
  writer.varint(format)
  writer.varint(user.merges)
  writer.varint(user.identities)
  packAscending(writer, user.sources)
  packAscending(
    writer,
    user.members.every(known.audience) ? user.members : user.members.filter(known.audience),
  )
  if (user.computed.size === 0) writer.varint(0)
  else packComputed(writer, user.computed, known)
  const summariesAt = writer.length()
  packSummaries(writer, user, known)
  const traitsAt = writer.length()
  if (user.traits === null) writer.packed(user.packed, user.traitsAt, user.packed.length)
  else packTraits(writer, user.traits)
  user.packed = writer.take()
  user.summariesAt = summariesAt
  user.traitsAt = traitsAt
  user.folded = null
  user.traits = null
  user.values = null
}

/** So that the next `repack` has nothing to do, unless something changes before it. */
export const packAhead = (user: UserState, known: Known): void => {
  repack(user, known)
  const { merges, identities, sources, members, computed } = user
  user.packing = { merges, identities, sources, members, computed, known }
}

/** Lists and maps are replaced where they change, so that it shows. */
const isPacked = (user: UserState, known: Known): boolean => {
  const { packing } = user
  return (
    packing !== null &&
    user.folded === null &&
    user.traits === null &&
    packing.known === known &&
    packing.merges === user.merges &&
    packing.identities === user.identities &&
    packing.sources === user.sources &&
    packing.members === user.members &&
    packing.computed === user.computed
  )
}

const packComputed = (to: ByteWriter, held: UserState['computed'], known: Known): void => {
  const ids: number[] = []
  for (const id of held.keys()) if (known.audience(id)) ids.push(id)
  if (ids.length > 1) ids.sort((left, right) => left - right)
  to.varint(ids.length)
  for (const id of ids) {
    to.varint(id)
    to.text(held.get(id) as string)
  }
}

const packAscending = (to: ByteWriter, ids: readonly number[]): void => {
  to.varint(ids.length)
  let last = 0
  for (const id of ids) {
    to.varint(id - last)
    last = id
  }
}

const noneFolded: readonly Folded[] = []

/** Which of the stored ones stay as they are, by their places: of one user at a time. */
const kept: number[] = []

/** Ascending by id; what was not folded is copied as it stands. */
const packSummaries = (to: ByteWriter, user: UserState, known: Known): void => {
  const { packed, summariesAt } = user
  const folded = user.folded ?? noneFolded
  const made = folded.every(({ id }) => known.leaf(id))
    ? folded
    : folded.filter(({ id }) => known.leaf(id))
  const places = placesOf(packed, summariesAt)
  const { ids, starts, ends } = places
  const keptCount = findKept(places, made, known)
  to.varint(made.length + keptCount)
  let [last, next] = [0, 0]
  for (let at = 0; at < keptCount; at++) {
    const place = kept[at] as number
    const id = ids[place] as number
    for (; next < made.length && (made[next] as Folded).id < id; next++)
      last = packMade(to, made[next] as Folded, last)
    const from = starts[place] as number
    const until = ends[place] as number
    // After the same one as before its head says the same, too.
    const isNextToLast = last === (place === 0 ? 0 : (ids[place - 1] as number))
    if (!isNextToLast) {
      to.varint(id - last)
      to.varint(until - from)
    }
    to.packed(packed, isNextToLast ? headOf(places, place) : from, until)
    last = id
  }
  for (; next < made.length; next++) last = packMade(to, made[next] as Folded, last)
}

/** Fills `kept` and says how many they are. */
const findKept = ({ ids, count }: Places, made: readonly Folded[], known: Known): number => {
  let [found, next] = [0, 0]
  for (let place = 0; place < count; place++) {
    const id = ids[place] as number
    while (next < made.length && (made[next] as Folded).id < id) next++
    if (made[next]?.id !== id && known.leaf(id)) kept[found++] = place
  }
  return found
}

/** Where its id and length stand. */
const headOf = ({ first, ends }: Places, place: number): number =>
  place === 0 ? first : (ends[place - 1] as number)

/** Returns its id. */
const packMade = (to: ByteWriter, { id, kind, summary }: Folded, last: number): number => {
  to.varint(id - last)
  const start = to.open()
  kind.write(to, summary)
  to.close(start)
  return id
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

export const unpackUser = ({ st, ...row }: PackedUser): UserState =>
  unpackText(row, st.toString('latin1'))

/** Of the packed form as a string of bytes; all of its summaries are walked, so a cut one is refused. */
export const unpackText = (row: Omit<PackedUser, 'st'>, stored: string): UserState => {
  const packed = stored.charCodeAt(0) === 1 ? fromFirstFormat(stored) : stored
  reader.open(packed, 0)
  const stamp = reader.varint()
  if (stamp !== format && stamp !== withoutSources)
    throw new RangeError('a packed user has an unknown format')
  const merges = reader.varint()
  const identities = reader.varint()
  const sources = stamp === withoutSources ? unknownSources : readAscending()
  const members = readAscending()
  const computed = readComputed()
  const summariesAt = reader.at()
  eachSummary(reader, () => undefined)
  return {
    key: row.key,
    workspaceId: row.workspaceId,
    ver: row.ver,
    userId: row.userId,
    merges,
    identities,
    sources,
    members,
    computed,
    packed,
    summariesAt,
    traitsAt: reader.at(),
    folded: null,
    traits: null,
    values: null,
    packing: null,
    due: row.due,
  }
}

const noneComputed: UserState['computed'] = new Map()

const readComputed = (): UserState['computed'] => {
  let left = reader.varint()
  if (left === 0) return noneComputed
  const computed = new Map<number, string>()
  for (; left > 0; left--) computed.set(reader.varint(), reader.text())
  return computed
}

const readAscending = (): readonly number[] => {
  const ids: number[] = []
  let last = 0
  for (let left = reader.varint(); left > 0; left--) {
    last += reader.varint()
    ids.push(last)
  }
  return ids
}
