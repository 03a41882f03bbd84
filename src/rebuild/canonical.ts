// What a user is, said without keys and without the order things were done in: two states that say the
// same of everybody are equal. Pure.
import { assess } from '../audience/assess.ts'
import type { Plan } from '../audience/plan.ts'
import { summaryOf, traitsOf, type UserState } from '../audience/state.ts'
import { byteWriter } from '../domain/bytes.ts'

export type Canonical = {
  readonly userId: string | null
  /** "kind:value", in the order of keys. */
  readonly identities: readonly string[]
  readonly traits: readonly string[]
  /** Of each leaf of the plan that something is kept of: "leaf:bytes". */
  readonly summaries: readonly string[]
  /** Memberships, marks of accounts and computed traits as of one instant. */
  readonly answers: readonly string[]
  readonly accounts: readonly string[]
}

export type Part = keyof Canonical

type Under = {
  readonly plan: Plan
  /** Not before anything folded. */
  readonly at: number
  readonly identities: readonly string[]
  readonly accounts: readonly string[]
}

const writer = byteWriter()

/** The state given is looked at as of `at`, and not to be used any more. */
export const canonicalOf = (
  user: UserState,
  { plan, at, identities, accounts }: Under,
): Canonical => {
  const audiences = plan.workspaces.get(user.workspaceId)?.audiences ?? []
  assess(user, { audiences, at, whole: true })
  const evaluated = new Set(audiences.map(({ id }) => id))
  return {
    userId: user.userId,
    identities,
    traits: [...traitsOf(user)]
      .map(([key, { value, stamp }]) => JSON.stringify([key, value, stamp.te, stamp.r, stamp.id]))
      .sort(),
    summaries: [...plan.leaves.values()].flatMap((leaf) => {
      const summary = summaryOf(user, leaf)
      if (summary === undefined) return []
      leaf.kind.write(writer, summary)
      return [`${leaf.id}:${Buffer.from(writer.take(), 'latin1').toString('base64')}`]
    }),
    answers: [
      ...user.members.filter((id) => evaluated.has(id)).map((id) => `${id}:true`),
      ...[...user.computed]
        .filter(([id]) => evaluated.has(id))
        .map(([id, value]) => `${id}:${value}`),
    ].sort(),
    accounts: [...accounts].sort(),
  }
}

/** The parts in which the two differ. */
export const differingParts = (left: Canonical, right: Canonical): readonly Part[] =>
  (Object.keys(left) as Part[]).filter(
    (part) => JSON.stringify(left[part]) !== JSON.stringify(right[part]),
  )
