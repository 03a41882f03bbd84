// Evaluating a user's audiences at an instant: which memberships flip, and when to look again.
import { holds, leafTurns, leafValue } from '../domain/condition/evaluate.ts'
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
  const { key: userKey, userId } = user
  for (const { id: audienceId, yields } of audiences) {
    if (yields.type === 'value') {
      const found = leafValue(yields.leaf, facts, at)
      const value = found === undefined ? null : JSON.stringify(found)
      due = Math.min(due, leafTurns(yields.leaf, facts, at))
      if (!takeValue(user, audienceId, value)) continue
      flips.push({ audienceId, userKey, userId, member: value !== null, value, mark: false })
    } else {
      const member = holds(yields.condition, facts, at)
      due = Math.min(due, changeWithin(yields.condition, facts, { at, until: due }))
      if (!takeMember(user, audienceId, member)) continue
      flips.push({ audienceId, userKey, userId, member, value: null, mark: yields.type === 'mark' })
    }
  }
  user.due = due
  return flips
}

/** Whether it is another than the user had. */
const takeValue = (user: UserState, id: number, value: string | null): boolean => {
  if ((user.computed.get(id) ?? null) === value) return false
  const computed = new Map(user.computed)
  if (value === null) computed.delete(id)
  else computed.set(id, value)
  user.computed = computed
  return true
}

/** Whether that is another than it was. */
const takeMember = (user: UserState, id: number, member: boolean): boolean => {
  const { members } = user
  let at = 0
  while (at < members.length && (members[at] as number) < id) at++
  if ((members[at] === id) === member) return false
  user.members = member ? members.toSpliced(at, 0, id) : members.toSpliced(at, 1)
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
