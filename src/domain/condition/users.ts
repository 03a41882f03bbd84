// The condition of an audience of accounts: {"users": {"quantifier", "where"}}, how many of an account's users meet what.
import type { JsonObject } from '../message.ts'
import type { Condition, Problem } from './condition.ts'
import { type ParseOptions, parseNode, reading } from './parse.ts'

export const quantifiers = ['any', 'all', 'none'] as const
export type Quantifier = (typeof quantifiers)[number]

export type UsersCondition = {
  readonly quantifier: Quantifier
  /** Users without a user id are no users of the account. */
  readonly identified: boolean
  readonly where: Condition
}

/** The condition is about accounts: it may only be so as a whole. */
export const isAboutAccounts = (json: JsonObject): boolean => Object.hasOwn(json, 'users')

type Parsed =
  | { readonly ok: true; readonly users: UsersCondition }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export const parseUsers = (json: unknown, options: ParseOptions): Parsed => {
  const { found, problems } = reading(json, options, (root): UsersCondition | null => {
    root.only(['users'])
    const at = root.in('users')
    if (at.object() === null) return null
    at.only(['quantifier', 'identified', 'where'])
    const quantifier = at.in('quantifier').oneOf(quantifiers)
    const flag = at.in('identified')
    if (flag.given() && flag.value !== true) flag.refuse('expected true, or nothing')
    const where = parseNode(at.in('where'), 0)
    return quantifier === null || where === null
      ? null
      : { quantifier, identified: flag.value === true, where }
  })
  return found === null ? { ok: false, problems } : { ok: true, users: found }
}

/** Of a sound one: what the users' own condition is, and the same with another in its place. */
export const innerOf = (json: JsonObject): JsonObject =>
  (json['users'] as JsonObject)['where'] as JsonObject

export const withoutAnonymous = (json: JsonObject): JsonObject => ({
  users: {
    ...(json['users'] as JsonObject),
    identified: true,
    where: { all: [{ identified: true }, innerOf(json)] },
  },
})
