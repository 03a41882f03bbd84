// The SQL of adding up what users changed of their accounts, and of setting memberships by it.
//
// Transactions of this file follow one another whoever runs them, by a lock; and each statement of
// one sees what is committed by then (READ COMMITTED).
import type { Flip } from '../audience/assess.ts'
import { numberList, textList } from '../audience/lists.ts'
import { pinPlans, saveFlips } from '../audience/store.ts'
import { type AccountRule, accountPasses, accountTurns, type Counted } from '../domain/account.ts'
import type { Quantifier } from '../domain/condition/users.ts'
import type { Sql } from '../postgres/sql.ts'
import { instantSql } from './chunk-store.ts'

/** 'MILLACCT' read as a number. */
const lockKey = '5567930463015535444'

type Account = { readonly workspaceId: number; readonly groupId: string }

const nameOf = ({ workspaceId, groupId }: Account) => `${workspaceId}:${groupId}`

/** Whether any of these audiences is one of accounts. */
export const areAccountsAsked = async (
  sql: Sql,
  audienceIds: readonly number[],
): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `select 1 from audience_state where audience_id = any($1) and condition ? 'users' limit 1`,
    [audienceIds],
  )
  return rowCount !== 0
}

/** The last of what stands to be added up and looked at; `null` for nothing. */
export type Backlog = { readonly delta: number; readonly visit: number }

export const readBacklog = async (sql: Sql): Promise<Backlog & { readonly length: number }> => {
  const { rows } = await sql.query<Backlog & { readonly length: number }>(
    `select coalesce(d.last, 0)::float8 as delta, coalesce(v.last, 0)::float8 as visit,
            greatest(d.last - d.first, v.last - v.first, 0)::float8 as length
       from (select min(id) as first, max(id) as last from account_delta) d,
            (select min(id) as first, max(id) as last from account_visit) v`,
  )
  return rows[0] as Backlog & { length: number }
}

/** First in each transaction. */
const begin = async (tx: Sql): Promise<void> => {
  await tx.query(`select pg_advisory_xact_lock(${lockKey})`)
  await pinPlans(tx)
}

export const readInstant = async (sql: Sql, now: Date): Promise<Date> => {
  const { rows } = await sql.query<{ at: Date }>(
    `select coalesce(${instantSql('$1')}, $1::timestamptz) as at`,
    [now],
  )
  return (rows[0] as { at: Date }).at
}

export const dueShards = async (
  sql: Sql,
  { at, shards }: { readonly at: Date; readonly shards: number },
): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ shard: number }>(
    `select shard from generate_series(0, $2 - 1) as s(shard)
      where exists (select 1 from ustate u where u.shard = s.shard and u.due <= $1)`,
    [at, shards],
  )
  return rows.map(({ shard }) => shard)
}

const readRules = async (sql: Sql): Promise<readonly AccountRule[]> => {
  const { rows } = await sql.query<Omit<AccountRule, 'quantifier'> & { quantifier: Quantifier }>(
    `select audience_id as "audienceId", workspace_id as "workspaceId",
            condition -> 'users' ->> 'quantifier' as quantifier,
            condition -> 'users' ? 'identified' as identified
       from audience_state where condition ? 'users' order by audience_id`,
  )
  return rows
}

/** By account and mark; what is not there is 0. */
const readCounts = async (
  tx: Sql,
  accounts: readonly Account[],
): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> => {
  const { rows } = await tx.query<Account & { mark: number; users: number }>(
    `select c.workspace_id as "workspaceId", c.group_id as "groupId", c.mark, c.users
       from unnest($1::int[], $2::text[]) as w(workspace_id, group_id)
       join account_count c on c.workspace_id = w.workspace_id
        and c.group_id = w.group_id collate "C"`,
    [
      numberList(accounts.map(({ workspaceId }) => workspaceId)),
      textList(accounts.map(({ groupId }) => groupId)),
    ],
  )
  const counts = new Map<string, Map<number, number>>()
  for (const row of rows) {
    const name = nameOf(row)
    const marks = counts.get(name) ?? new Map<number, number>()
    counts.set(name, marks.set(row.mark, row.users))
  }
  return counts
}

const countedIn =
  (marks: ReadonlyMap<number, number> | undefined): Counted =>
  (mark) =>
    marks?.get(mark) ?? 0

type Delta = Account & { readonly mark: number; readonly change: number }

type Taking = { readonly until: number; readonly limit: number }

/** Adds the oldest deltas up and notes the accounts that turn; `false` when there were none. */
export const addUp = async (tx: Sql, { until, limit }: Taking): Promise<boolean> => {
  await begin(tx)
  const { rows } = await tx.query<Delta>(
    `with taken as (
       delete from account_delta where id in (
         select id from account_delta where id <= $1 order by id limit $2)
       returning workspace_id, group_id, mark, change
     )
     select workspace_id as "workspaceId", group_id as "groupId", mark, sum(change)::int as change
       from taken group by 1, 2, 3`,
    [until, limit],
  )
  if (rows.length === 0) return false
  // After the deltas: the audience of each is there by now, or gone.
  const rules = await readRules(tx)
  const known = new Set(rules.map(({ audienceId }) => audienceId))
  const deltas = rows.filter(({ mark, change }) => change !== 0 && (mark <= 0 || known.has(mark)))
  const byAccount = Map.groupBy(deltas, nameOf)
  const accounts = [...byAccount.values()].map((own) => own[0] as Delta)
  const before = await readCounts(tx, accounts)
  const changed: (Account & { mark: number; users: number })[] = []
  const turned: Account[] = []
  for (const [name, own] of byAccount) {
    const held = before.get(name)
    const marks = new Map(held)
    for (const { mark, change, ...account } of own) {
      const users = (marks.get(mark) ?? 0) + change
      marks.set(mark, users)
      changed.push({ ...account, mark, users })
    }
    const account = own[0] as Delta
    const asked = rules.filter(({ workspaceId }) => workspaceId === account.workspaceId)
    if (accountTurns(asked, countedIn(held), countedIn(marks))) turned.push(account)
  }
  await saveCounts(tx, changed)
  await saveTurns(tx, turned)
  return true
}

const saveCounts = async (
  tx: Sql,
  changed: readonly (Account & { readonly mark: number; readonly users: number })[],
): Promise<void> => {
  if (changed.length === 0) return
  const keys = [
    numberList(changed.map(({ workspaceId }) => workspaceId)),
    textList(changed.map(({ groupId }) => groupId)),
    numberList(changed.map(({ mark }) => mark)),
  ]
  await tx.query(
    `insert into account_count (workspace_id, group_id, mark, users)
     select * from unnest($1::int[], $2::text[], $3::int[], $4::int[]) as c
     on conflict (workspace_id, group_id, mark) do update set users = excluded.users`,
    [...keys, numberList(changed.map(({ users }) => users))],
  )
  await tx.query(
    `delete from account_count c
      using unnest($1::int[], $2::text[], $3::int[]) as w(workspace_id, group_id, mark)
      where c.workspace_id = w.workspace_id and c.group_id = w.group_id collate "C"
        and c.mark = w.mark and c.users = 0`,
    keys,
  )
}

const saveTurns = async (tx: Sql, turned: readonly Account[]): Promise<void> => {
  if (turned.length === 0) return
  await tx.query(
    `insert into account_turn (workspace_id, group_id, after)
     select *, 0 from unnest($1::int[], $2::text[]) as t
     on conflict (workspace_id, group_id) do update set after = 0`,
    [
      numberList(turned.map(({ workspaceId }) => workspaceId)),
      textList(turned.map(({ groupId }) => groupId)),
    ],
  )
}

type Looking = { readonly limit: number; readonly at: Date }

/** Looks at the next users of accounts that turned; `false` when there were none. */
export const followTurns = async (tx: Sql, { limit, at }: Looking): Promise<boolean> => {
  await begin(tx)
  const { rows: turns } = await tx.query<Account>(
    `select workspace_id as "workspaceId", group_id as "groupId"
       from account_turn order by workspace_id, group_id limit $1`,
    [limit],
  )
  if (turns.length === 0) return false
  const keys = [
    numberList(turns.map(({ workspaceId }) => workspaceId)),
    textList(turns.map(({ groupId }) => groupId)),
  ]
  const { rows } = await tx.query<Account & { userKey: number }>(
    `select t.workspace_id as "workspaceId", t.group_id as "groupId", u.user_key::float8 as "userKey"
       from unnest($1::int[], $2::text[]) with ordinality as w(workspace_id, group_id, at)
       join account_turn t on t.workspace_id = w.workspace_id and t.group_id = w.group_id collate "C"
      cross join lateral (
         select a.user_key from account_user a
          where a.workspace_id = t.workspace_id and a.group_id = t.group_id and a.user_key > t.after
          order by a.user_key limit $3) u
      order by w.at, u.user_key limit $3`,
    [...keys, limit],
  )
  await setMemberships(tx, { keys: rows.map(({ userKey }) => userKey), at })
  // Only the last account of a full reading has more users.
  const last = rows.length < limit ? undefined : rows.at(-1)
  const done = last === undefined ? turns.length : turns.map(nameOf).indexOf(nameOf(last))
  await tx.query(
    `delete from account_turn t
      using unnest($1::int[], $2::text[]) with ordinality as w(workspace_id, group_id, at)
      where t.workspace_id = w.workspace_id and t.group_id = w.group_id collate "C" and w.at <= $3`,
    [...keys, done],
  )
  if (last !== undefined)
    await tx.query(
      'update account_turn set after = $3 where workspace_id = $1 and group_id = $2 collate "C"',
      [last.workspaceId, last.groupId, last.userKey],
    )
  return true
}

/** Looks at the users who asked for it, the oldest first; `false` when there were none. */
export const followVisits = async (
  tx: Sql,
  { until, limit, at }: Taking & Looking,
): Promise<boolean> => {
  await begin(tx)
  const { rows } = await tx.query<{ userKey: number }>(
    `delete from account_visit where id in (
       select id from account_visit where id <= $1 order by id limit $2)
     returning user_key::float8 as "userKey"`,
    [until, limit],
  )
  await setMemberships(tx, { keys: rows.map(({ userKey }) => userKey), at })
  return rows.length > 0
}

type Users = { readonly keys: readonly number[]; readonly at: Date }

/** Of audiences of accounts, by the counts as they are; users are locked as whoever writes them does. */
const setMemberships = async (tx: Sql, { keys, at }: Users): Promise<void> => {
  if (keys.length === 0) return
  const asked = [numberList([...new Set(keys)])]
  const { rows: users } = await tx.query<{ key: number; workspaceId: number; userId: string }>(
    `select user_key::float8 as key, workspace_id as "workspaceId", user_id as "userId"
       from ustate where user_key = any($1::bigint[]) and merged_into is null
      order by user_key for update`,
    asked,
  )
  const rules = Map.groupBy(await readRules(tx), ({ workspaceId }) => workspaceId)
  const { rows: ties } = await tx.query<Account & { userKey: number }>(
    `select user_key::float8 as "userKey", workspace_id as "workspaceId", group_id as "groupId"
       from account_user where user_key = any($1::bigint[])`,
    asked,
  )
  const accounts = new Map(ties.map((tie) => [nameOf(tie), tie]))
  const counts = await readCounts(tx, [...accounts.values()])
  const passed = new Map(
    [...accounts].map(([name, { workspaceId }]) => {
      const counted = countedIn(counts.get(name))
      const passing = (rules.get(workspaceId) ?? []).filter((rule) => accountPasses(rule, counted))
      return [name, passing.map(({ audienceId }) => audienceId)]
    }),
  )
  const tiesOf = Map.groupBy(ties, ({ userKey }) => userKey)
  const { rows: held } = await tx.query<{ userKey: number; audienceId: number; userId: string }>(
    `select m.user_key::float8 as "userKey", m.audience_id as "audienceId", m.user_id as "userId"
       from audience_state s
       join membership m on m.audience_id = s.audience_id
      where s.condition ? 'users' and m.user_key = any($1::bigint[]) and m.cur`,
    asked,
  )
  const heldBy = Map.groupBy(held, ({ userKey }) => userKey)
  const flips = users.flatMap(({ key, workspaceId, userId }): readonly Flip[] => {
    const wanted = new Set((tiesOf.get(key) ?? []).flatMap((tie) => passed.get(nameOf(tie)) ?? []))
    const now = new Map((heldBy.get(key) ?? []).map((row) => [row.audienceId, row]))
    return (rules.get(workspaceId) ?? []).flatMap(({ audienceId }): readonly Flip[] => {
      const member = wanted.has(audienceId)
      const row = now.get(audienceId)
      const isSet = member ? row !== undefined && row.userId === userId : row === undefined
      return isSet ? [] : [{ audienceId, userKey: key, userId, member, value: null, mark: false }]
    })
  })
  await saveFlips(tx, { flips, at })
}
