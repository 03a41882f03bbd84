// The SQL of accounts in a user's own transaction: ties to accounts, and what changes of their counts.
//
// At every commit the counts of an account and the deltas not yet added to them say how many of the
// users tied to it have each mark. So every change of a tie or a mark appends what it changes.
import { accountMarks } from '../domain/account.ts'
import type { Sql } from '../postgres/sql.ts'
import { numberList, textList } from './lists.ts'
import type { UserState } from './state.ts'

export type Tie = {
  readonly userKey: number
  readonly workspaceId: number
  readonly groupId: string
}

export type Marked = { readonly userKey: number; readonly mark: number }

/** Everything the user counts for in an account; `accountIds` are the workspace's. */
export const marksOf = (
  { key: userKey, userId, members }: Pick<UserState, 'key' | 'userId' | 'members'>,
  accountIds: ReadonlySet<number>,
): readonly Marked[] => [
  { userKey, mark: accountMarks.tied },
  ...(userId === null ? [] : [{ userKey, mark: accountMarks.identified }]),
  ...members.flatMap((id) => (accountIds.has(id) ? [{ userKey, mark: id }] : [])),
]

/** Marks that users, who are locked, got or lost; counted for the accounts that they are tied to. */
export const appendMarks = async (
  tx: Sql,
  changed: readonly (Marked & { readonly has: boolean })[],
): Promise<void> => {
  if (changed.length === 0) return
  await tx.query(
    `insert into account_delta (workspace_id, group_id, mark, change)
     select t.workspace_id, t.group_id, c.mark, c.change
       from unnest($1::bigint[], $2::int[], $3::int[]) as c(user_key, mark, change)
       join account_user t on t.user_key = c.user_key`,
    [
      numberList(changed.map(({ userKey }) => userKey)),
      numberList(changed.map(({ mark }) => mark)),
      numberList(changed.map(({ has }) => (has ? 1 : -1))),
    ],
  )
}

/** Users that are locked; `marks` are all of theirs as they are now. Returns whom a tie is new to. */
export const tieUsers = async (
  tx: Sql,
  { ties, marks }: { readonly ties: readonly Tie[]; readonly marks: readonly Marked[] },
): Promise<ReadonlySet<number>> => {
  if (ties.length === 0) return new Set()
  const { rows } = await tx.query<{ userKey: number }>(
    `with tied as (
       insert into account_user (user_key, workspace_id, group_id)
       select distinct * from unnest($1::bigint[], $2::int[], $3::text[]) as t
       on conflict do nothing returning user_key, workspace_id, group_id
     ), counted as (
       insert into account_delta (workspace_id, group_id, mark, change)
       select t.workspace_id, t.group_id, m.mark, 1
         from tied t join unnest($4::bigint[], $5::int[]) as m(user_key, mark) using (user_key)
     ), visited as (
       insert into account_visit (user_key) select distinct user_key from tied
     )
     select distinct user_key::float8 as "userKey" from tied`,
    [
      numberList(ties.map(({ userKey }) => userKey)),
      numberList(ties.map(({ workspaceId }) => workspaceId)),
      textList(ties.map(({ groupId }) => groupId)),
      numberList(marks.map(({ userKey }) => userKey)),
      numberList(marks.map(({ mark }) => mark)),
    ],
  )
  return new Set(rows.map(({ userKey }) => userKey))
}

/** Of users that are no more; `marks` are theirs as they were stored. Returns the ties they had. */
export const untieUsers = async (
  tx: Sql,
  { keys, marks }: { readonly keys: readonly number[]; readonly marks: readonly Marked[] },
): Promise<readonly Tie[]> => {
  if (keys.length === 0) return []
  const { rows } = await tx.query<Tie>(
    `with untied as (
       delete from account_user where user_key = any($1::bigint[])
       returning user_key, workspace_id, group_id
     ), counted as (
       insert into account_delta (workspace_id, group_id, mark, change)
       select t.workspace_id, t.group_id, m.mark, -1
         from untied t join unnest($2::bigint[], $3::int[]) as m(user_key, mark) using (user_key)
     )
     select user_key::float8 as "userKey", workspace_id as "workspaceId", group_id as "groupId"
       from untied`,
    [
      numberList(keys),
      numberList(marks.map(({ userKey }) => userKey)),
      numberList(marks.map(({ mark }) => mark)),
    ],
  )
  return rows
}

/** Those tied to any account are looked at again by the next sync of accounts' audiences. */
export const visitUsers = async (tx: Sql, keys: readonly number[]): Promise<void> => {
  if (keys.length === 0) return
  await tx.query(
    `insert into account_visit (user_key)
     select k.user_key from unnest($1::bigint[]) as k(user_key)
      where exists (select 1 from account_user t where t.user_key = k.user_key)`,
    [numberList(keys)],
  )
}
