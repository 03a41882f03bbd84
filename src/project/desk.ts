// What the projector keeps between batches, and of the one in hand.
import type { Plan } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import type { SipKey } from '../domain/siphash.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Pool } from '../postgres/sql.ts'
import type { BoundedMap } from './bounded-map.ts'
import type { StoredSightings } from './meter.ts'
import type { keySupply } from './store.ts'
import type { TextCache } from './text-cache.ts'
import type { UserCache } from './user-cache.ts'

export type Desk = {
  readonly pool: Pool
  readonly users: UserCache
  /** By the identity’s text. Only what is stored; whether it still holds shows when the user is locked or written. */
  readonly identities: TextCache
  /** From a user merged away to the one it became. */
  readonly merged: BoundedMap<number, number>
  readonly keys: ReturnType<typeof keySupply>
  /** `null` where nothing is metered. */
  readonly sightings: StoredSightings | null
  readonly usageKey: SipKey
  readonly suppressions: Suppressions
  readonly yieldMs: number
  plan: Plan
  /** The highest receivedAt folded by this process, epoch ms. */
  folded: number
  /** So many more batches lock their users before they are folded. */
  lockFirst: number
  /** Users of the batches being written: they come back to the cache after the commit. */
  inHand: readonly ReadonlyMap<number, UserState>[]
  /** Whether an identity, by its text, is one that the batch in hand makes. */
  isMaking: (text: string) => boolean
}

export const nobodyInHand = { inHand: [], isMaking: () => false }
