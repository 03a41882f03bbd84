// Evaluating a user's audiences at an instant: which memberships flip, and when to look again.
import { type Facts, holds, leafTurns, leafValue } from '../domain/condition/evaluate.ts'
import { changeWithin } from '../domain/condition/turn.ts'
import type { PlannedAudience } from './plan.ts'
import { factsOf, type UserState } from './state.ts'

export type Flip = {
  readonly audienceId: number
  readonly userKey: number
  readonly userId: string | null
  readonly member: boolean
  /** Of a computed trait, as JSON; `null` for none, and for audiences. */
  readonly value: string | null
  /** What changed is whether the user counts for their accounts, not a membership. */
  readonly mark: boolean
}

type Look = {
  readonly audiences: Iterable<PlannedAudience>
  readonly at: number
  /** All of the user's audiences are looked at, so the timer is set anew, later too. */
  readonly whole: boolean
}

/**
 * Sets the user's bits and timer and returns the flips. A timer only ever moves earlier unless all
 * audiences were looked at: a stale early one costs one more look, a moved index entry costs each write.
 */
export const assess = (user: UserState, { audiences, at, whole }: Look): readonly Flip[] => {
  const facts = factsOf(user)
  const flips: Flip[] = []
  // Whatever is not before the earliest instant known needs no closer look.
  let due = whole ? Number.POSITIVE_INFINITY : user.due
  for (const audience of audiences) {
    const now = yieldOf(audience, facts, { at, until: due })
    due = Math.min(due, now.due)
    if (!take(user, audience, now)) continue
    const mark = audience.yields.type === 'mark'
    flips.push({ audienceId: audience.id, userKey: user.key, userId: user.userId, mark, ...now.of })
  }
  user.due = due
  return flips
}

type Now = { readonly of: Pick<Flip, 'member' | 'value'>; readonly due: number }

type Span = { readonly at: number; readonly until: number }

const yieldOf = ({ yields }: PlannedAudience, facts: Facts, span: Span): Now => {
  const { at } = span
  if (yields.type !== 'value') {
    const { condition } = yields
    const member = holds(condition, facts, at)
    return { of: { member, value: null }, due: changeWithin(condition, facts, span) }
  }
  const found = leafValue(yields.leaf, facts, at)
  const value = found === undefined ? null : JSON.stringify(found)
  return { of: { member: value !== null, value }, due: leafTurns(yields.leaf, facts, at) }
}

/** Whether it is another than the user had. */
const take = (user: UserState, { id, yields }: PlannedAudience, { of }: Now): boolean => {
  if (yields.type === 'value') {
    if ((user.computed.get(id) ?? null) === of.value) return false
    const computed = new Map(user.computed)
    if (of.value === null) computed.delete(id)
    else computed.set(id, of.value)
    user.computed = computed
    return true
  }
  if (of.member === user.members.includes(id)) return false
  user.members = of.member
    ? [...user.members, id].sort((left, right) => left - right)
    : user.members.filter((held) => held !== id)
  return true
}

/**
 * What the user is in and has, to be written again where the row of memberships must show a new name.
 * `accountIds`: of those the user's own bits say nothing of memberships.
 */
export const heldBy = (user: UserState, accountIds: ReadonlySet<number>): readonly Flip[] => {
  const { key: userKey, userId, members, computed } = user
  const of = { userKey, userId, member: true, mark: false }
  return [
    ...members.flatMap((audienceId) =>
      accountIds.has(audienceId) ? [] : [{ ...of, audienceId, value: null }],
    ),
    ...[...computed].map(([audienceId, value]) => ({ ...of, audienceId, value })),
  ]
}

/** What is left of it when the user becomes another; of accounts' audiences they may be in any. */
export const leftBy = (user: UserState, accountIds: ReadonlySet<number>): readonly Flip[] => {
  const { key: userKey, userId } = user
  const left = { userKey, userId, member: false, value: null, mark: false }
  return [
    ...heldBy(user, accountIds).map((flip) => ({ ...flip, ...left })),
    ...[...accountIds].map((audienceId) => ({ ...left, audienceId })),
  ]
}
