// The binary form of a user's state in ustate.st: typically a few hundred bytes, far below 2 kB.
import { type ByteWriter, byteWriter, packedReader } from '../domain/bytes.ts'
import type { Stamp, Traits } from '../domain/traits.ts'
import type { UserState } from './state.ts'
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
  const computed = [...user.computed].filter(([id]) => known.audience(id))
  writer.varint(computed.length)
  for (const [id, value] of computed.sort(([left], [right]) => left - right)) {
    writer.varint(id)
    writer.text(value)
  }
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

const packAscending = (to: ByteWriter, ids: readonly number[]): void => {
  to.varint(ids.length)
  let last = 0
  for (const id of ids) {
    to.varint(id - last)
    last = id
  }
}

/** Ascending by id; what was not folded is copied as it stands. */
const packSummaries = (to: ByteWriter, user: UserState, known: Known): void => {
  const { packed, summariesAt, folded } = user
  const made = folded === null ? [] : [...folded].filter(([id]) => known.leaf(id))
  if (made.length > 1) made.sort(([left], [right]) => left - right)
  const isKept = (id: number) => known.leaf(id) && folded?.has(id) !== true
  let count = made.length
  reader.open(packed, summariesAt)
  eachSummary(reader, (id) => {
    if (isKept(id)) count += 1
  })
  to.varint(count)
  let [last, next] = [0, 0]
  const writeMade = (until: number) => {
    for (; next < made.length; next++) {
      const [id, { kind, summary }] = made[next] as (typeof made)[number]
      if (id > until) return
      to.varint(id - last)
      to.sized(() => kind.write(to, summary))
      last = id
    }
  }
  reader.open(packed, summariesAt)
  reader.varint()
  let [passed, copied] = [0, reader.at()]
  reader.open(packed, summariesAt)
  eachSummary(reader, (id, from, until) => {
    writeMade(id)
    if (isKept(id)) {
      // After the same one as before its head says the same, too.
      if (last !== passed) {
        to.varint(id - last)
        to.varint(until - from)
      }
      to.packed(packed, last === passed ? copied : from, until)
      last = id
    }
    passed = id
    copied = until
  })
  writeMade(Number.POSITIVE_INFINITY)
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
