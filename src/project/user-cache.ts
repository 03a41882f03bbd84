// Users by key, outside the heap and as Postgres gives them: who was not written lately is forgotten first.
import { packedRow } from '../audience/rows.ts'
import type { UserState } from '../audience/state.ts'
import { openRing } from './ring.ts'

export type UserCache = {
  has(key: number): boolean
  /** Whether it has them; then they stay until about half of it was written over. */
  keep(key: number): boolean
  /** Gets and forgets. */
  take(key: number): UserState | undefined
  /** As packed; whose summaries or traits are not, or take too much, is forgotten. */
  set(user: UserState): void
  /** Users many to a value, those that are in it already excepted. */
  addPacked(values: readonly Buffer[]): void
  delete(key: number): void
}

type Span = { readonly from: number; readonly until: number }

/** Somebody with little: then nobody is forgotten because they are many, but because they take room. */
const entryBytes = 120

export const openUserCache = (bytesMax: number): UserCache => {
  const ring = openRing({ bytesMax, entryBytes })
  const bytes = Buffer.from(ring.buffer)
  let wanted = 0
  const isWanted = (place: number): boolean => packedRow.key(bytes, place) === wanted
  const find = (key: number): number => {
    wanted = key
    return ring.find(hashOf(key), isWanted)
  }
  const add = (key: number, value: Buffer, { from, until }: Span): boolean => {
    const place = ring.add(hashOf(key), until - from)
    if (place >= 0) value.copy(bytes, place, from, until)
    return place >= 0
  }
  const remove = (key: number): void => {
    const place = find(key)
    if (place >= 0) ring.remove(place)
  }
  return {
    has: (key) => find(key) >= 0,
    keep: (key) => {
      const place = find(key)
      if (place < 0) return false
      if (!ring.isOld(place)) return true
      // The new place may be the old one.
      const row = Buffer.from(bytes.subarray(place, packedRow.end(bytes, place)))
      ring.remove(place)
      return add(key, row, { from: 0, until: row.length })
    },
    take: (key) => {
      const place = find(key)
      if (place < 0) return undefined
      ring.remove(place)
      return packedRow.user(bytes, place) ?? undefined
    },
    set: (user) => {
      remove(user.key)
      if (user.folded !== null || user.traits !== null) return
      const place = ring.add(hashOf(user.key), packedRow.bytes(user))
      if (place >= 0) packedRow.put(bytes, user, place)
    },
    addPacked: (values) => {
      for (const value of values)
        for (let [at, end] = [0, 0]; at < value.length; at = end) {
          end = packedRow.end(value, at)
          const key = packedRow.key(value, at)
          if (find(key) < 0) add(key, value, { from: at, until: end })
        }
    },
    delete: remove,
  }
}

/** Keys are ours, and neighbours are in use together. */
const hashOf = (key: number): number => {
  const hash = Math.imul(key | 0, 0x9e37_79b1)
  return hash ^ (hash >>> 15)
}
