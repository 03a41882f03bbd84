// The binary form of a user's state in ustate.st: typically a few hundred bytes, far below 2 kB.
import { type ByteWriter, byteWriter, packedReader } from '../domain/bytes.ts'
import type { Stamp, Traits } from '../domain/traits.ts'
import type { Folded, UserState } from './state.ts'
import { eachSummary } from './unpack.ts'
import { fromFirstFormat } from './upgrade.ts'

const format = 3
/** Knew nothing of the sources that had seen the user. */
const withoutSources = 2
const unknownSources: readonly number[] = [0]

type Known = { leaf(id: number): boolean; audience(id: number): boolean }

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

const packComputed = (to: ByteWriter, held: UserState['computed'], known: Known): void => {
  const computed = [...held].filter(([id]) => known.audience(id))
  if (computed.length > 1) computed.sort(([left], [right]) => left - right)
  to.varint(computed.length)
  for (const [id, value] of computed) {
    to.varint(id)
    to.text(value)
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

/** Ascending by id; what was not folded is copied as it stands. */
const packSummaries = (to: ByteWriter, user: UserState, known: Known): void => {
  const { packed, summariesAt } = user
  const folded = user.folded ?? noneFolded
  const made = folded.every(({ id }) => known.leaf(id))
    ? folded
    : folded.filter(({ id }) => known.leaf(id))
  to.varint(made.length + countKept(user, made, known))
  let [last, next] = [0, 0]
  reader.open(packed, summariesAt)
  let left = reader.varint()
  let [id, passed, copied] = [0, 0, reader.at()]
  for (; left > 0; left--) {
    id += reader.varint()
    const length = reader.varint()
    const from = reader.at()
    reader.skip(length)
    for (; next < made.length && (made[next] as Folded).id < id; next++)
      last = packMade(to, made[next] as Folded, last)
    const isMade = made[next]?.id === id
    if (!isMade && known.leaf(id)) {
      // After the same one as before its head says the same, too.
      if (last !== passed) {
        to.varint(id - last)
        to.varint(length)
      }
      to.packed(packed, last === passed ? copied : from, from + length)
      last = id
    }
    passed = id
    copied = from + length
  }
  for (; next < made.length; next++) last = packMade(to, made[next] as Folded, last)
}

/** How many of the stored ones stay as they are. */
const countKept = (user: UserState, made: readonly Folded[], known: Known): number => {
  let [count, next, id] = [0, 0, 0]
  reader.open(user.packed, user.summariesAt)
  for (let left = reader.varint(); left > 0; left--) {
    id += reader.varint()
    reader.skip(reader.varint())
    while (next < made.length && (made[next] as Folded).id < id) next++
    if (made[next]?.id !== id && known.leaf(id)) count += 1
  }
  return count
}

/** Returns its id. */
const packMade = (to: ByteWriter, { id, kind, summary }: Folded, last: number): number => {
  to.varint(id - last)
  to.sized(() => kind.write(to, summary))
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
  const computed = new Map<number, string>()
  for (let left = reader.varint(); left > 0; left--) computed.set(reader.varint(), reader.text())
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
    due: row.due,
  }
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
