// Evaluating a user's audiences at an instant: which memberships flip, and when to look again.
import { holds, nextChange } from '../domain/condition/evaluate.ts'
import type { PlannedAudience } from './plan.ts'
import { factsOf, type UserState } from './state.ts'

export type Flip = {
  readonly audienceId: number
  readonly userKey: number
  readonly userId: string | null
  readonly member: boolean
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
  let due = Number.POSITIVE_INFINITY
  for (const { id, condition } of audiences) {
    const member = holds(condition, facts, at)
    due = Math.min(due, nextChange(condition, facts, at))
    if (member === user.members.includes(id)) continue
    user.members = member
      ? [...user.members, id].sort((left, right) => left - right)
      : user.members.filter((held) => held !== id)
    flips.push({ audienceId: id, userKey: user.key, userId: user.userId, member })
  }
  user.due = whole ? due : Math.min(user.due, due)
  return flips
}
