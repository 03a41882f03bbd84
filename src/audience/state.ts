// One user as the projector and the sweep hold it: packed as stored, and over it what was asked for or changed.
import type { Facts } from '../domain/condition/evaluate.ts'
import { type CountSummary, combineCounts } from '../domain/condition/summary.ts'
import type { JsonObject } from '../domain/message.ts'
import { combineTraits, type Traits, traitValues } from '../domain/traits.ts'
import { unpackSummaries, unpackSummary, unpackTraits } from './unpack.ts'

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
  /** The packed form as bytes of a string, which costs the heap a fifth of what decoding it all does. */
  packed: string
  /** Where in it the summaries start, and where the traits do. */
  summariesAt: number
  traitsAt: number
  /** Summaries folded since they were packed. */
  folded: Map<number, CountSummary> | null
  /** `null` until somebody asks: most calls neither write nor read traits. */
  traits: Traits | null
  /** As conditions read them; dropped when traits change. */
  values: JsonObject | null
  /** When time alone may change a membership: never later than it does. `Infinity` for never. */
  due: number
}

/** No summaries and no traits. */
const nothing = '\0\0'

export const traitsOf = (user: UserState): Traits => {
  user.traits ??= unpackTraits(user.packed, user.traitsAt)
  return user.traits
}

export const summaryOf = (user: UserState, leafId: number): CountSummary | undefined =>
  user.folded?.get(leafId) ?? unpackSummary(user.packed, user.summariesAt, leafId)

export const setSummary = (user: UserState, leafId: number, summary: CountSummary): void => {
  user.folded ??= new Map()
  user.folded.set(leafId, summary)
}

/** All of them, for merges. */
export const summariesOf = (user: UserState): ReadonlyMap<number, CountSummary> =>
  new Map([...unpackSummaries(user.packed, user.summariesAt), ...(user.folded ?? [])])

export const newUser = (key: number, workspaceId: number): UserState => ({
  key,
  workspaceId,
  ver: 0,
  userId: null,
  merges: 0,
  identities: 0,
  members: [],
  packed: nothing,
  summariesAt: 0,
  traitsAt: 1,
  folded: null,
  traits: null,
  values: null,
  due: Number.POSITIVE_INFINITY,
})

export const factsOf = (user: UserState): Facts => ({
  traits: () => {
    user.values ??= traitValues(traitsOf(user))
    return user.values
  },
  summary: (leafId) => summaryOf(user, leafId),
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
  for (const [leafId, summary] of summariesOf(vanished)) {
    const held = summaryOf(survivor, leafId)
    setSummary(
      survivor,
      leafId,
      held === undefined ? summary : combineCounts(held, summary, keepOf(leafId)),
    )
  }
  setTraits(survivor, combineTraits(traitsOf(survivor), traitsOf(vanished)))
  survivor.merges += vanished.merges + 1
  survivor.identities += vanished.identities
}
