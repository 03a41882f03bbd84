// The users a batch is folded into: those of the cache, or locked first where somebody else is likely to write them.
import type { UserState } from '../audience/state.ts'
import { lockUsers } from '../audience/store.ts'
import type { Connection } from '../postgres/sql.ts'
import type { Desk } from './desk.ts'
import type { Folded } from './fold.ts'
import type { Prepared } from './prepare.ts'

export type Held = {
  readonly users: ReadonlyMap<number, UserState>
  readonly locked: boolean
}

const noIdentities: ReadonlyMap<string, number> = new Map()

/** With what the batch before has made meanwhile, or makes where it is not written yet. */
export const knownNow = (
  desk: Desk,
  { asked, known }: Prepared,
  making = noIdentities,
): ReadonlyMap<string, number> => {
  const now = new Map<string, number>()
  for (const text of asked.keys()) {
    const key = making.get(text) ?? desk.identities.get(text) ?? known.get(text)
    if (key !== undefined) now.set(text, becameBy(desk, key))
  }
  return now
}

/** Whoever a user has become, and that one since. */
const becameBy = ({ merged }: Desk, key: number): number => {
  let at = key
  for (let next = merged.get(at); next !== undefined; next = merged.get(at)) at = next
  return at
}

/** After somebody else’s write was met, so many batches lock before they fold: others may follow. */
export const lockFirstBatches = 16

/** Of the batch being written, or else from the cache; `null` when those do not have them all. */
export const takeCached = (
  desk: Desk,
  known: ReadonlyMap<string, number>,
  inHand: ReadonlyMap<number, UserState>,
): ReadonlyMap<number, UserState> | null => {
  const keys = new Set(known.values())
  for (const key of keys) if (!inHand.has(key) && !desk.users.has(key)) return null
  const users = new Map<number, UserState>()
  for (const key of keys) {
    const held = inHand.get(key)
    if (held !== undefined) desk.users.delete(key)
    users.set(key, held ?? (desk.users.take(key) as UserState))
  }
  return users
}

/**
 * `null` when a key has no living row: it was merged away after the identity was read. From the cache
 * alone where that has them all; whether they are still as stored shows when they are written.
 */
export const holdUsers = async (
  tx: Connection,
  desk: Desk,
  known: ReadonlyMap<string, number>,
): Promise<Held | null> => {
  const keys = [...new Set(known.values())].sort((left, right) => left - right)
  const cached = keys.map((key) => desk.users.take(key))
  const users = new Map<number, UserState>()
  for (const user of cached) if (user !== undefined) users.set(user.key, user)
  if (desk.lockFirst === 0 && users.size === keys.length) return { users, locked: false }
  const { count, stale } = await lockUsers(
    tx,
    keys.map((key, at) => ({ key, ver: cached[at]?.ver ?? 0 })),
  )
  for (const { key, user } of stale) {
    if (user === null) users.delete(key)
    else users.set(key, user)
  }
  return count < keys.length || users.size < keys.length ? null : { users, locked: true }
}

/**
 * Whether writing the users locks all that the batch rests on, so that they need no lock before: each
 * of them changed, and nothing but the users’ own rows and new ones depends on who they are.
 */
export const locksItself = ({ unchanged, vanished, ties, decisions }: Folded): boolean =>
  unchanged === 0 && vanished.length === 0 && ties.length === 0 && decisions.length === 0

/** Whether users that were folded into without a lock are the stored ones; they are locked from here on. */
export const lockHeld = async (
  tx: Connection,
  users: ReadonlyMap<number, UserState>,
): Promise<boolean> => {
  const wanted = [...users.values()].map(({ key, ver }) => ({ key, ver }))
  const { count, stale } = await lockUsers(tx, wanted)
  return count === wanted.length && stale.length === 0
}
