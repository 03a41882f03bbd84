// The SQL of accounts in a user's own transaction: ties to accounts, and what changes of their counts.
//
// At every commit the counts of an account and the deltas not yet added to them say how many of the
// users tied to it have each mark. So every change of a tie or a mark appends what it changes.
import { accountLimits, accountMarks } from '../domain/account.ts'
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

type Tying = {
  readonly ties: readonly Tie[]
  /** Everything the users count for, as it is now. */
  readonly marks: readonly Marked[]
  /** Smaller than the product's only where a test wants to reach it. */
  readonly tiesMax?: number
}

/** Users that are locked. Returns whom a tie is new to; a user with too many keeps those, and gets no more. */
export const tieUsers = async (
  tx: Sql,
  { ties, marks, tiesMax = accountLimits.tiesMax }: Tying,
): Promise<ReadonlySet<number>> => {
  if (ties.length === 0) return new Set()
  const { rows } = await tx.query<{ userKey: number }>(
    `with fresh as materialized (
       select t.*, row_number() over (partition by user_key order by group_id collate "C")
                   as place
         from (select distinct * from unnest($1::bigint[], $2::int[], $3::text[])
                 as t(user_key, workspace_id, group_id)) t
        where not exists (select 1 from account_user a
                           where a.user_key = t.user_key and a.group_id = t.group_id collate "C")
     ), held as materialized (
       select u.user_key, (select count(*) from account_user a where a.user_key = u.user_key) as ties
         from (select distinct user_key from fresh) u
     ), judged as materialized (
       select f.*, f.place + h.ties <= $6 as fits from fresh f join held h using (user_key)
     ), left_out as (
       insert into account_delta (workspace_id, group_id, mark, change)
       select workspace_id, group_id, ${accountMarks.leftOut}, 1 from judged where not fits
     ), tied as (
       insert into account_user (user_key, workspace_id, group_id)
       select user_key, workspace_id, group_id from judged where fits
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
      tiesMax,
    ],
  )
  return new Set(rows.map(({ userKey }) => userKey))
}

/** Calls that would have tied a user to one account too many, of all accounts. By account_count_mark. */
export const countLeftOut = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ calls: number }>(
    `select (select coalesce(sum(users), 0) from account_count where mark = $1)::float8
          + (select coalesce(sum(change), 0) from account_delta where mark = $1)::float8 as calls`,
    [accountMarks.leftOut],
  )
  return rows[0]?.calls ?? 0
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
