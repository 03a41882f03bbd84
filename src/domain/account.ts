// Accounts: when one passes an audience's condition on its users, and what a change of counts turns.
import type { Quantifier } from './condition/users.ts'
import { isBlocked } from './identity.ts'
import type { Message } from './message.ts'

/**
 * What is counted of an account's users beside the audiences whose inner condition they meet; of those left out
 * it is the calls that would have tied a user to one account too many.
 */
export const accountMarks = { tied: 0, identified: -1, leftOut: -2 } as const

export const accountLimits = {
  /** Accounts that calls tie one user to; a merge ties the survivor to the first of both users' by name. */
  tiesMax: 1_000,
}

/** What an audience asks of an account; `identified`: only users with a user id are its users. */
export type AccountRule = {
  readonly audienceId: number
  readonly workspaceId: number
  readonly quantifier: Quantifier
  readonly identified: boolean
}

/** How many of an account's users have the mark. */
export type Counted = (mark: number) => number

/** Of an account's users, and how many of them meet what is asked. */
export type AccountUsers = { readonly users: number; readonly meeting: number }

/** All and none ask for one user at least: an account of nobody passes nothing. */
export const quantifierHolds = (
  quantifier: Quantifier,
  { users, meeting }: AccountUsers,
): boolean => {
  switch (quantifier) {
    case 'any':
      return meeting > 0
    case 'all':
      return users > 0 && meeting === users
    case 'none':
      return users > 0 && meeting === 0
  }
}

export const accountPasses = (rule: AccountRule, counted: Counted): boolean =>
  quantifierHolds(rule.quantifier, {
    users: counted(rule.identified ? accountMarks.identified : accountMarks.tied),
    meeting: counted(rule.audienceId),
  })

/** Whether any rule answers otherwise of the counts `after` than of those `before`. */
export const accountTurns = (
  rules: readonly AccountRule[],
  before: Counted,
  after: Counted,
): boolean => rules.some((rule) => accountPasses(rule, before) !== accountPasses(rule, after))

/** The account a call ties its user to. Values that many share by mistake name none. */
export const accountOf = ({
  type,
  groupId,
  filtered,
}: Pick<Message, 'type' | 'groupId' | 'filtered'>) =>
  type === 'group' && filtered === null && groupId !== null && !isBlocked(groupId) ? groupId : null
