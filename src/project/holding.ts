// Who the calls of a write-back may be of: identities and users, gathered batch by batch from the cache, or else read.
import { readUsers } from '../audience/rows.ts'
import type { UserState } from '../audience/state.ts'
import { pinPlans } from '../audience/store.ts'
import type { Identity } from '../domain/identity.ts'
import type { Connection } from '../postgres/sql.ts'
import { unwind } from './batch.ts'
import type { Desk } from './desk.ts'
import { knownNow } from './held.ts'
import { findMissing, type Prepared } from './prepare.ts'

export type Holding = {
  /** By the identity's text. */
  readonly known: ReadonlyMap<string, number>
  /** Every user of `known`. */
  readonly users: ReadonlyMap<number, UserState>
  /** Of the users as they were stored. */
  bytes(): number
  /** So that `known` and `users` have all that the batch asks for; `makes` says which identities the fold makes itself. */
  take(prepared: Prepared, makes: (text: string) => boolean): Promise<void>
}

export const openHolding = (desk: Desk): Holding => {
  const known = new Map<string, number>()
  const users = new Map<number, UserState>()
  let bytes = 0
  const hold = (user: UserState) => {
    users.set(user.key, user)
    bytes += user.packed.length
  }
  /** Answers who is not in the cache. */
  const holdCached = (keys: Iterable<number>): readonly number[] => {
    const cold = new Set<number>()
    for (const key of keys) {
      if (users.has(key)) continue
      const cached = desk.users.take(key)
      if (cached === undefined) cold.add(key)
      else hold(cached)
    }
    return [...cold]
  }
  /** Identities are looked up anew where the cache forgot them, or leads to a user who is no more. */
  const readCold = async (tx: Connection, { asked, now, cold, unknown }: Cold) => {
    await pinPlans(tx)
    for (const user of await readUsers(tx, cold)) hold(user)
    const gone = [...asked].filter(([text]) => now.has(text) && !users.has(now.get(text) as number))
    for (const [text] of gone) known.delete(text)
    const found = new Map<string, number>()
    await findMissing(tx, desk, { known: found, missing: [...unknown, ...gone] })
    for (const user of await readUsers(tx, holdCached(found.values()))) hold(user)
    for (const [text, key] of found) {
      if (!users.has(key)) throw unwind({ type: 'stale', plan: null })
      known.set(text, key)
    }
  }
  return {
    known,
    users,
    bytes: () => bytes,
    take: async (prepared, makes) => {
      const { asked, unasked } = prepared
      const now = knownNow(desk, prepared)
      const cold = holdCached(now.values())
      const unknown = [...unasked].filter(([text]) => !now.has(text) && !makes(text))
      for (const [text, key] of now) known.set(text, key)
      if (cold.length + unknown.length > 0)
        await desk.pool.transaction((tx) => readCold(tx, { asked, now, cold, unknown }))
    },
  }
}

type Cold = {
  readonly asked: Prepared['asked']
  /** By the identity's text: as far as the cache tells. */
  readonly now: ReadonlyMap<string, number>
  /** Users of those who are not in it. */
  readonly cold: readonly number[]
  readonly unknown: readonly (readonly [string, Identity])[]
}
