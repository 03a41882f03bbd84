// Trying a condition on accounts before it is saved: each account is judged by its users as they are stored.
//
// Users are read as for any preview. Where those are not all there are, the other users of their accounts are
// read besides, up to a limit: what one user of an account does decides about all of them.
import { quantifierHolds } from '../domain/account.ts'
import { bind, holds, type LeafFinder } from '../domain/condition/evaluate.ts'
import { leavesOf } from '../domain/condition/leaf.ts'
import type { UsersCondition } from '../domain/condition/users.ts'
import type { Sql } from '../postgres/sql.ts'
import { numberList, textList } from './lists.ts'
import { findLeaves } from './look.ts'
import { type Asking, missingLeaves, overAfter, type Preview } from './preview.ts'
import { packedUser, readRows, usersInValue } from './rows.ts'
import { foldSample } from './sample-history.ts'
import { factsOf, type UserState } from './state.ts'
import { openCounter, type Part, scanUsers } from './survey.ts'

export const accountPreviewLimits = {
  /** Of all users that are read, together. */
  tiesMax: 200_000,
}

type Tie = { readonly userKey: number; readonly groupId: string }

/** What was read: some users that stand for all, and everyone who was found in their accounts. */
type Read = {
  readonly parts: readonly Part[]
  readonly users: ReadonlyMap<number, UserState>
  readonly ties: readonly Tie[]
  /** Of all ranges of users, up to 1. */
  readonly done: number
  readonly isWhole: boolean
}

/** `null` when the log would have to be read and cannot be. Inside one REPEATABLE READ transaction. */
export const previewAccounts = async (asking: Asking<UsersCondition>): Promise<Preview | null> => {
  const { sql, workspaceId, condition, log } = asking
  const find = await findLeaves(sql, workspaceId)
  const missing = missingLeaves(leavesOf(condition.where), find)
  if (missing.size > 0 && log === null) return null
  const isOver = overAfter(asking)
  const read = await readAccounts(asking, isOver)
  const sampled =
    log === null || missing.size === 0
      ? null
      : await foldSample({
          ...{ sql, workspaceId, isOver, ...log, users: read.users },
          leaves: [...missing.values()],
          callsMax: asking.limits.callsMax,
        })
  const findAny: LeafFinder = (need) => find(need) ?? missing.get(need.hash) ?? null
  const judging = { read, find: findAny, at: asking.at }
  const members = membersBy(condition, judging)
  const before = await formerly(asking, judging)
  return {
    ...count({ read, members, before, sampleMax: asking.sampleMax }),
    log: sampled,
    isExact: read.isWhole && (sampled?.isWhole ?? true),
  }
}

const readAccounts = async (
  asking: Asking<UsersCondition>,
  isOver: () => boolean,
): Promise<Read> => {
  const { sql, workspaceId, limits } = asking
  const parts: Part[] = []
  for await (const part of scanUsers(sql, { workspaceId, usersMax: limits.logUsersMax })) {
    parts.push(part)
    if (isOver()) break
  }
  const users = new Map(parts.flatMap((part) => part.users.map((user) => [user.key, user])))
  const own = await readTies(sql, [...users.keys()])
  const done = parts.at(-1)?.done ?? 1
  const isAll = done === 1 && parts.every(({ weight }) => weight === 1)
  if (isAll) return { parts, users, ties: own.ties, done, isWhole: own.isWhole }
  const groups = [...new Set(own.ties.map(({ groupId }) => groupId))]
  const others = await readOthers(sql, {
    workspaceId,
    groups,
    keys: [...users.keys()],
    limit: limits.logUsersMax,
  })
  const keys = [...new Set(others.map(({ userKey }) => userKey))]
  for (const user of await readUsers(sql, keys)) users.set(user.key, user)
  return { parts, users, ties: [...own.ties, ...others], done, isWhole: false }
}

/** By account_user_pkey. */
const readTies = async (sql: Sql, keys: readonly number[]) => {
  const { rows } = await sql.query<Tie>(
    `select user_key::float8 as "userKey", group_id as "groupId" from account_user
      where user_key = any($1::bigint[]) limit $2`,
    [numberList(keys), accountPreviewLimits.tiesMax],
  )
  return { ties: rows, isWhole: rows.length < accountPreviewLimits.tiesMax }
}

type Others = {
  readonly workspaceId: number
  readonly groups: readonly string[]
  readonly keys: readonly number[]
  readonly limit: number
}

/** By account_user_of. */
const readOthers = async (
  sql: Sql,
  { workspaceId, groups, keys, limit }: Others,
): Promise<readonly Tie[]> => {
  const { rows } = await sql.query<Tie>(
    `select a.user_key::float8 as "userKey", a.group_id as "groupId"
       from unnest($2::text[]) as w(group_id)
       join account_user a on a.workspace_id = $1 and a.group_id = w.group_id collate "C"
      where not exists (select 1 from unnest($3::bigint[]) as k(user_key)
                         where k.user_key = a.user_key)
      limit $4`,
    [workspaceId, textList(groups), numberList(keys), limit],
  )
  return rows
}

const readUsers = async (sql: Sql, keys: readonly number[]): Promise<readonly UserState[]> => {
  const found: UserState[] = []
  for (let from = 0; from < keys.length; from += usersInValue) {
    const { rows } = await sql.query<{ users: Buffer | null }>(
      `select string_agg(${packedUser}, ''::bytea) as users
         from ustate u where u.user_key = any($1::bigint[])`,
      [numberList(keys.slice(from, from + usersInValue))],
    )
    const users = rows[0]?.users ?? null
    if (users !== null) found.push(...readRows(users).flatMap(({ user }) => user ?? []))
  }
  return found
}

type Judging = { readonly read: Read; readonly find: LeafFinder; readonly at: number }

/** Everyone tied to an account that passes. */
const membersBy = (
  { quantifier, identified, where }: UsersCondition,
  { read: { users, ties }, find, at }: Judging,
): ReadonlySet<number> => {
  const bound = bind(where, find)
  if (bound === null) throw new RangeError('a condition that is worked out has no state')
  const meets = new Map([...users].map(([key, user]) => [key, holds(bound, factsOf(user), at)]))
  const passes = (keys: readonly number[]) => {
    const counted = identified ? keys.filter((key) => users.get(key)?.userId !== null) : keys
    return quantifierHolds(quantifier, {
      users: counted.length,
      meeting: counted.filter((key) => meets.get(key)).length,
    })
  }
  const accounts = Map.groupBy(ties, ({ groupId }) => groupId).values()
  const keys = [...accounts].map((own) => own.map(({ userKey }) => userKey))
  return new Set(keys.filter(passes).flat())
}

/** Who is in the audience that is compared with. */
const formerly = async (
  { sql, current, at }: Asking<UsersCondition>,
  { read, find }: Omit<Judging, 'at'>,
): Promise<ReadonlySet<number>> => {
  if (current === null) return new Set()
  if (current.condition !== null) return membersBy(current.condition, { read, find, at })
  const { rows } = await sql.query<{ userKey: number }>(
    `select user_key::float8 as "userKey" from membership
      where audience_id = $1 and cur and user_key = any($2::bigint[])`,
    [current.id, numberList([...read.users.keys()])],
  )
  return new Set(rows.map(({ userKey }) => userKey))
}

type Counting = {
  readonly read: Read
  readonly members: ReadonlySet<number>
  readonly before: ReadonlySet<number>
  readonly sampleMax: number
}

const count = ({ read: { parts, done }, members, before, sampleMax }: Counting) => {
  const [is, entering, leaving] = [
    openCounter(sampleMax),
    openCounter(sampleMax),
    openCounter(sampleMax),
  ]
  let [users, usersRead] = [0, 0]
  for (const part of parts) {
    users += part.users.length * part.weight
    usersRead += part.users.length
    for (const user of part.users) {
      const [isIn, wasIn] = [members.has(user.key), before.has(user.key)]
      if (isIn) is.add(user, part.weight)
      if (isIn && !wasIn) entering.add(user, part.weight)
      if (wasIn && !isIn) leaving.add(user, part.weight)
    }
  }
  const scale = 1 / done
  return {
    ...{ users: Math.round(users * scale), usersRead },
    members: is.tally(scale),
    entering: entering.tally(scale),
    leaving: leaving.tally(scale),
  }
}
