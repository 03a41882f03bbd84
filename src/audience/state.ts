// One user as the projector and the sweep hold it: packed as stored, and over it what was asked for or changed.
import type { Facts } from '../domain/condition/evaluate.ts'
import type { Kind, Summary } from '../domain/condition/summary/kind.ts'
import type { JsonObject } from '../domain/message.ts'
import { combineTraits, type Traits, traitValues } from '../domain/traits.ts'
import type { Known, PlannedLeaf } from './plan.ts'
import { readLeaf, readLeaves, unpackTraits, unpackTraitValues } from './unpack.ts'

export const shards = 64

/** A summary made since the user was packed, and how it is written. */
export type Folded = { readonly id: number; readonly kind: Kind<Summary>; summary: Summary }

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
  /** Sources that have seen the user, ascending; 0 among them: others, too, of before that was kept. */
  sources: readonly number[]
  /** Ids of the audiences the user is in, ascending. */
  members: readonly number[]
  /** Computed traits by id, each as JSON. */
  computed: ReadonlyMap<number, string>
  /** The packed form as bytes of a string, which costs the heap a fifth of what decoding it all does. */
  packed: string
  /** Where in it the summaries start, and where the traits do. */
  summariesAt: number
  traitsAt: number
  /** Summaries folded since they were packed, ascending by id: a few, which are looked through. */
  folded: Folded[] | null
  /** `null` unless they were written since: most calls write none. */
  traits: Traits | null
  /** As conditions read them; dropped when traits change. */
  values: JsonObject | null
  /** What `packed` was made of where that was done ahead. */
  packing: Packing | null
  /** When time alone may change a membership: never later than it does. `Infinity` for never. */
  due: number
}

export type Packing = Pick<
  UserState,
  'merges' | 'identities' | 'sources' | 'members' | 'computed'
> & { readonly known: Known }

/** No summaries and no traits. */
const nothing = '\0\0'

export const traitsOf = (user: UserState): Traits =>
  user.traits ?? unpackTraits(user.packed, user.traitsAt)

/** `undefined` where nothing of the leaf was folded yet. */
export const summaryOf = (user: UserState, leaf: Leaf): Summary | undefined => {
  const { folded } = user
  if (folded !== null) for (const held of folded) if (held.id === leaf.id) return held.summary
  return readLeaf(user.packed, user.summariesAt, leaf)
}

type Leaf = Pick<PlannedLeaf, 'id' | 'kind'>

export const setSummary = (user: UserState, { id, kind }: Leaf, summary: Summary): void => {
  user.folded ??= []
  const { folded } = user
  let at = folded.length
  while (at > 0 && (folded[at - 1] as Folded).id > id) at--
  const held = folded[at - 1]
  if (held?.id === id) held.summary = summary
  else if (at === folded.length) folded.push({ id, kind, summary })
  else folded.splice(at, 0, { id, kind, summary })
}

export const newUser = (key: number, workspaceId: number): UserState => ({
  key,
  workspaceId,
  ver: 0,
  userId: null,
  merges: 0,
  identities: 0,
  sources: [],
  members: [],
  computed: new Map(),
  packed: nothing,
  summariesAt: 0,
  traitsAt: 1,
  folded: null,
  traits: null,
  values: null,
  packing: null,
  due: Number.POSITIVE_INFINITY,
})

/** A user as they are. */
export const factsOf = (user: UserState): Facts => ({
  traits: () => {
    user.values ??=
      user.traits === null
        ? unpackTraitValues(user.packed, user.traitsAt)
        : traitValues(user.traits)
    return user.values
  },
  identified: user.userId !== null,
  summary: (leaf) => summaryOf(user, leaf),
})

export const setTraits = (user: UserState, traits: Traits): void => {
  user.traits = traits
  user.values = null
}

/** Whether it is a new one. */
export const seeSource = (user: UserState, sourceId: number): boolean => {
  if (user.sources.includes(sourceId)) return false
  user.sources = [...user.sources, sourceId].sort((left, right) => left - right)
  return true
}

/** As if all that `vanished` did had been done by `survivor`; bits are evaluated again afterwards. */
export const absorb = (
  survivor: UserState,
  vanished: UserState,
  leaves: ReadonlyMap<number, PlannedLeaf>,
): void => {
  const ids = [
    ...readLeaves(vanished.packed, vanished.summariesAt),
    ...(vanished.folded ?? []).map(({ id }) => id),
  ]
  for (const id of new Set(ids)) {
    const leaf = leaves.get(id)
    // Nobody's any more: it goes with the one who vanishes.
    if (leaf === undefined) continue
    const theirs = summaryOf(vanished, leaf) ?? leaf.kind.empty
    const held = summaryOf(survivor, leaf)
    setSummary(survivor, leaf, held === undefined ? theirs : leaf.kind.combine(held, theirs))
  }
  setTraits(survivor, combineTraits(traitsOf(survivor), traitsOf(vanished)))
  survivor.merges += vanished.merges + 1
  survivor.identities += vanished.identities
  for (const sourceId of vanished.sources) seeSource(survivor, sourceId)
}
