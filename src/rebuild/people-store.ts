// The SQL of going through all users of a state by their identities, whatever keys they have.
import { numberList } from '../audience/lists.ts'
import { readUsers } from '../audience/rows.ts'
import type { UserState } from '../audience/state.ts'
import type { Connection, Sql } from '../postgres/sql.ts'

/** Where a walk stands: by the primary key of identities. */
export type Identified = {
  readonly workspaceId: number
  readonly kind: number
  readonly value: string
}

export const beforeAll: Identified = { workspaceId: 0, kind: 0, value: '' }

export type IdentityRow = Identified & { readonly userKey: number }

type Page = { readonly after: Identified; readonly limit: number }

/** By identity_pkey. */
export const readIdentities = async (
  sql: Sql,
  { after, limit }: Page,
): Promise<readonly IdentityRow[]> => {
  const { rows } = await sql.query<IdentityRow>(
    `select workspace_id as "workspaceId", kind, value, user_key::float8 as "userKey"
       from identity
      where (workspace_id, kind, value) > ($1, $2, $3 collate "C")
      order by workspace_id, kind, value limit $4`,
    [after.workspaceId, after.kind, after.value, limit],
  )
  return rows
}

export type Person = {
  readonly state: UserState
  /** "kind:value", in the order of keys. */
  readonly identities: readonly string[]
  readonly accounts: readonly string[]
}

/** By key. By identity_user, ustate_pkey and account_user_pkey. */
export const readPeople = async (
  sql: Connection,
  keys: readonly number[],
): Promise<ReadonlyMap<number, Person>> => {
  const list = numberList(keys)
  const { rows: identities } = await sql.query<{ key: number; all: readonly string[] }>(
    `select i.user_key::float8 as key, array_agg(i.kind || ':' || i.value order by i.kind, i.value) as all
       from unnest($1::bigint[]) as w(user_key) join identity i on i.user_key = w.user_key
      group by i.user_key`,
    [list],
  )
  const { rows: accounts } = await sql.query<{ key: number; all: readonly string[] }>(
    `select t.user_key::float8 as key, array_agg(t.group_id order by t.group_id) as all
       from unnest($1::bigint[]) as w(user_key) join account_user t on t.user_key = w.user_key
      group by t.user_key`,
    [list],
  )
  const identitiesOf = new Map(identities.map(({ key, all }) => [key, all]))
  const accountsOf = new Map(accounts.map(({ key, all }) => [key, all]))
  return new Map(
    (await readUsers(sql, keys)).map((state) => [
      state.key,
      {
        state,
        identities: identitiesOf.get(state.key) ?? [],
        accounts: accountsOf.get(state.key) ?? [],
      },
    ]),
  )
}
