// One user as the projector and the sweep hold it: summaries, membership bits and traits, decoded.
import type { Facts } from '../domain/evaluate.ts'
import type { JsonObject } from '../domain/message.ts'
import { type CountSummary, combineCounts } from '../domain/summary.ts'
import { combineTraits, type Traits, traitValues } from '../domain/traits.ts'

export const shards = 64

/** Changed in place while a batch is folded; what a failed batch touched is thrown away. */
export type UserState = {
  readonly key: number
  readonly workspaceId: number
  /** Of the stored row; 0 while there is none. */
  ver: number
  userId: string | null
  /** Profiles merged into this one so far. */
  merges: number
  identities: number
  /** Ids of the audiences the user is in, ascending. */
  members: readonly number[]
  readonly summaries: Map<number, CountSummary>
  /** Packed until somebody asks: most calls neither write nor read traits. */
  traits: Traits | PackedTraits
  /** As conditions read them; dropped when traits change. */
  values: JsonObject | null
  /** When time alone may change a membership: never later than it does. `Infinity` for never. */
  due: number
  /** Of the packed form, when it was last packed or read: what a cache weighs it by. */
  packedBytes: number
}

/** The traits' own part of a packed user. */
export type PackedTraits = { readonly packed: Buffer; readonly unpack: () => Traits }

export const traitsOf = (user: UserState): Traits => {
  if ('packed' in user.traits) user.traits = user.traits.unpack()
  return user.traits
}

export const newUser = (key: number, workspaceId: number): UserState => ({
  key,
  workspaceId,
  ver: 0,
  userId: null,
  merges: 0,
  identities: 0,
  members: [],
  summaries: new Map(),
  traits: new Map(),
  values: null,
  due: Number.POSITIVE_INFINITY,
  packedBytes: 0,
})

export const factsOf = (user: UserState): Facts => ({
  traits: () => {
    user.values ??= traitValues(traitsOf(user))
    return user.values
  },
  summary: (leafId) => user.summaries.get(leafId),
})

export const setTraits = (user: UserState, traits: Traits): void => {
  user.traits = traits
  user.values = null
}

/** As if all that `vanished` did had been done by `survivor`; bits are evaluated again afterwards. */
export const absorb = (
  survivor: UserState,
  vanished: UserState,
  keepOf: (leafId: number) => number,
): void => {
  for (const [leafId, summary] of vanished.summaries) {
    const held = survivor.summaries.get(leafId)
    survivor.summaries.set(
      leafId,
      held === undefined ? summary : combineCounts(held, summary, keepOf(leafId)),
    )
  }
  setTraits(survivor, combineTraits(traitsOf(survivor), traitsOf(vanished)))
  survivor.merges += vanished.merges + 1
  survivor.identities += vanished.identities
}
