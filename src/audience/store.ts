// The SQL of users and memberships, shared by the projector, its back-fill and the sweep.
import type { Connection, Sql } from '../postgres/sql.ts'
import type { Flip } from './assess.ts'
import { copyMembers, copyRows, type MemberRow, type UserRow } from './copy.ts'
import { numberList, textList } from './lists.ts'
import { type PackedUsers, packedRows } from './packed-users.ts'
import type { Plan } from './plan.ts'
import { type PackedRow, packedUser, readRows, usersInValue } from './rows.ts'
import { shards, type UserState } from './state.ts'
import { appendMarks } from './ties.ts'

/**
 * Plans are pinned: with stale statistics the planner has turned a few thousand index probes into
 * scans of the whole table.
 */
const pinned = `set local enable_hashjoin = off; set local enable_mergejoin = off;
  set local enable_seqscan = off`

/** First in a transaction that only reads. */
export const pinPlans = async (tx: Sql): Promise<void> => {
  await tx.query(pinned)
}

/** First in every transaction that writes users. */
export const prepareSession = async (tx: Sql): Promise<void> => {
  await tx.query(
    `${pinned}; set local client_min_messages = error;
     create temp table if not exists ustate_in (
       user_key bigint, shard smallint, workspace_id int, ver bigint, user_id text, st bytea,
       due timestamptz, merged_into bigint
     ) on commit delete rows`,
  )
}

export type LockedRow = {
  readonly key: number
  readonly ver: number
  readonly workspaceId: number
  readonly userId: string | null
  readonly due: number
  readonly st: Buffer
}

const lockedColumns = `u.user_key::float8 as key, u.ver::float8 as ver,
  u.workspace_id as "workspaceId", u.user_id as "userId",
  coalesce(round(date_part('epoch', u.due) * 1000), 'Infinity'::float8) as due`

export type Locked = {
  /** How many of the wanted there are. */
  readonly count: number
  /** Those whose stored `ver` is not the wanted one. */
  readonly stale: readonly PackedRow[]
}

/**
 * Locks rows in the order of keys; a state comes along only where the cached one is not the stored
 * one. Cost: one probe of ustate_pkey a key.
 */
export const lockUsers = async (
  tx: Sql,
  wanted: readonly { readonly key: number; readonly ver: number }[],
): Promise<Locked> => {
  if (wanted.length === 0) return { count: 0, stale: [] }
  const { rows } = await tx.query<{ count: number; users: Buffer | null }>(
    `with locked as materialized (
       select w.at, case when u.ver is distinct from w.ver then ${packedUser} end as packed
         from unnest($1::bigint[], $2::bigint[]) with ordinality as w(user_key, ver, at)
         join ustate u on u.user_key = w.user_key
        order by u.user_key for update of u
     )
     select count(*)::int as count, string_agg(packed, ''::bytea) as users
       from locked group by at / ${usersInValue}`,
    [numberList(wanted.map(({ key }) => key)), numberList(wanted.map(({ ver }) => ver))],
  )
  return {
    count: rows.reduce((sum, { count }) => sum + count, 0),
    stale: rows.flatMap(({ users }) => (users === null ? [] : readRows(users))),
  }
}

/** Locks the next users by key, for a pass over all of them; tombstones are left out. */
export const lockUsersAfter = async (
  tx: Sql,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly LockedRow[]> => {
  const { rows } = await tx.query<LockedRow>(
    `select ${lockedColumns}, u.st
       from ustate u where u.user_key > $1 and u.merged_into is null
      order by u.user_key limit $2 for update of u`,
    [after, limit],
  )
  return rows
}

/** By ustate_due: the users of a shard whose timer has run out. */
export const lockUsersDue = async (
  tx: Sql,
  wanted: { readonly shard: number; readonly at: Date; readonly limit: number },
): Promise<readonly LockedRow[]> => {
  const { rows } = await tx.query<LockedRow>(
    `with due as materialized (
       select user_key from ustate where shard = $1 and due <= $2 order by due limit $3
     )
     select ${lockedColumns}, u.st
       from due d join ustate u on u.user_key = d.user_key
      where u.due <= $2
      order by u.user_key for update of u`,
    [wanted.shard, wanted.at, wanted.limit],
  )
  return rows
}

const copyIn = 'copy ustate_in from stdin (format binary)'

/** Writes users that are locked or new, each with its next `ver`. */
export const saveUsers = async (
  tx: Connection,
  users: readonly UserState[],
  plan: Plan,
): Promise<void> => {
  if (users.length > 0) await saveRows(tx, packedRows(users, plan))
}

/**
 * Writes users, locked or not: `false` when the stored one of any is not the one it was made from, and then the
 * transaction is to be rolled back. Locks rows in the order of keys.
 */
export const replaceUsers = async (tx: Connection, users: PackedUsers): Promise<boolean> => {
  if (users.storedCount > 0) {
    await tx.copyIn(copyIn, users.stored)
    const { rowCount } = await tx.query(
      `update ustate u set (ver, user_id, st, due) = (i.ver, i.user_id, i.st, i.due)
         from ustate_in i where u.user_key = i.user_key and u.ver = i.ver - 1`,
    )
    if (rowCount !== users.storedCount) return false
  }
  if (users.madeCount > 0) await tx.copyIn('copy ustate from stdin (format binary)', users.made)
  return true
}

type Gone = { readonly user: UserState; readonly into: number }

/**
 * Leaves of users that are no more a row that says so: whoever has the key in memory still finds by it that
 * the user is gone. Users that the same transaction has written are still in its session table.
 */
export const entombUsers = async (tx: Sql, gone: readonly Gone[]): Promise<void> => {
  const users = gone.map(({ user }) => user)
  await tx.query(
    `insert into ustate (user_key, shard, workspace_id, ver, user_id, st, due, merged_into)
     select user_key, user_key % ${shards}, workspace_id, ver, null, '', 'infinity', into_key
       from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[])
         as g(user_key, workspace_id, ver, into_key)
     on conflict (user_key) do update
       set (ver, user_id, st, due, merged_into)
         = (excluded.ver, excluded.user_id, excluded.st, excluded.due, excluded.merged_into)`,
    [
      numberList(users.map(({ key }) => key)),
      numberList(users.map(({ workspaceId }) => workspaceId)),
      numberList(users.map(({ ver }) => ver + 1)),
      numberList(gone.map(({ into }) => into)),
    ],
  )
}

/** COPY into a session table, then one upsert: the fastest of the ways tried, at any row width. */
const saveRows = async (tx: Connection, rows: Iterable<UserRow>): Promise<void> => {
  await tx.copyIn(copyIn, copyRows(rows))
  await tx.query(
    `insert into ustate select * from ustate_in
     on conflict (user_key) do update
       set (ver, user_id, st, due, merged_into)
         = (excluded.ver, excluded.user_id, excluded.st, excluded.due, excluded.merged_into)`,
  )
}

type Flipped = { readonly flips: readonly Flip[]; readonly at: Date }

/** Memberships, and marks of accounts, of users whose rows are locked. An entry of one who is a member already fills the user id. */
export const saveFlips = async (tx: Sql, { flips, at }: Flipped): Promise<void> => {
  await appendMarks(
    tx,
    flips.flatMap(({ mark, userKey, audienceId, member: has }) =>
      mark ? [{ userKey, mark: audienceId, has }] : [],
    ),
  )
  const ordered = membershipsOf(flips)
  const entered = ordered.filter(({ member }) => member)
  const left = ordered.filter(({ member }) => !member)
  if (entered.length > 0) await enter(tx, entered, at)
  if (left.length > 0) await leave(tx, left)
}

const membershipsOf = (flips: readonly Flip[]): readonly Flip[] =>
  flips
    .filter(({ mark }) => !mark)
    .sort((left, right) => left.audienceId - right.audienceId || left.userKey - right.userKey)

/** Of users made in the same transaction: nothing is stored yet of what they are in. */
export const saveFirstFlips = async (tx: Connection, { flips, at }: Flipped): Promise<void> => {
  const entered = membershipsOf(flips).filter(({ member }) => member)
  if (entered.length === 0) return
  await tx.copyIn(
    `copy membership (audience_id, shard, user_key, user_id, value, cur, synced, entered_at)
       from stdin (format binary)`,
    copyMembers(memberRows(entered, at.getTime())),
  )
}

function* memberRows(flips: readonly Flip[], enteredAt: number): Generator<MemberRow> {
  for (const { audienceId, userKey, userId, value } of flips)
    yield { audienceId, shard: userKey % shards, userKey, userId, value, enteredAt }
}

const enter = async (tx: Sql, flips: readonly Flip[], at: Date): Promise<void> => {
  await tx.query(
    `insert into membership
       (audience_id, shard, user_key, user_id, value, cur, synced, entered_at)
     select f.audience_id, f.user_key % ${shards}, f.user_key, f.user_id, f.value, true, false, $5
       from unnest($1::int[], $2::bigint[], $3::text[], $4::text[])
         as f(audience_id, user_key, user_id, value)
     on conflict (audience_id, user_key) do update
       set cur = true, user_id = excluded.user_id, value = excluded.value,
           entered_at = case when membership.cur then membership.entered_at else excluded.entered_at end`,
    [
      numberList(flips.map(({ audienceId }) => audienceId)),
      numberList(flips.map(({ userKey }) => userKey)),
      textList(flips.map(({ userId }) => userId)),
      textList(flips.map(({ value }) => value)),
      at,
    ],
  )
}

/** The update takes the row locks, so that no sync can set `synced` between the two statements. */
const leave = async (tx: Sql, flips: readonly Flip[]): Promise<void> => {
  const keys = [
    numberList(flips.map(({ audienceId }) => audienceId)),
    numberList(flips.map(({ userKey }) => userKey)),
  ]
  const { rows } = await tx.query<{ audienceId: number; userKey: bigint; synced: boolean }>(
    `update membership m set cur = false, value = null
       from unnest($1::int[], $2::bigint[]) as f(audience_id, user_key)
      where m.audience_id = f.audience_id and m.user_key = f.user_key
     returning m.audience_id as "audienceId", m.user_key as "userKey", m.synced`,
    keys,
  )
  const gone = rows.filter(({ synced }) => !synced)
  if (gone.length === 0) return
  await tx.query(
    `delete from membership m
      using unnest($1::int[], $2::bigint[]) as f(audience_id, user_key)
      where m.audience_id = f.audience_id and m.user_key = f.user_key`,
    [gone.map(({ audienceId }) => audienceId), gone.map(({ userKey }) => userKey)],
  )
}
