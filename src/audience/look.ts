// Looking at users without writing: what the admin API explains and counts conditions by.
import type { Facts, LeafFinder } from '../domain/condition/evaluate.ts'
import { kindOf } from '../domain/condition/leaf.ts'
import { type Identity, identityKinds } from '../domain/identity.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import { leafFinder } from './plan.ts'
import { packedUser, readRows } from './rows.ts'
import { factsOf, type UserState } from './state.ts'

export type { Facts }
export { factsOf, type UserState }

/** An audience as it is worked out: `null` while nothing of it is known to the projector. */
export type Worked = {
  readonly state: 'backfilling' | 'live'
  /** Closed: without references. */
  readonly condition: JsonObject
  readonly timezone: string
}

export const readWorked = async (sql: Sql, audienceId: number): Promise<Worked | null> => {
  const { rows } = await sql.query<Worked>(
    'select state, condition, timezone from audience_state where audience_id = $1',
    [audienceId],
  )
  return rows[0] ?? null
}

type LeafRow = {
  readonly id: number
  readonly workspaceId: number
  readonly hash: string
  readonly keep: number
}

/** Finds the leaves that know all of history; one that is still read from the log is not among them. */
export const findLeaves = async (sql: Sql, workspaceId: number): Promise<LeafFinder> => {
  const { rows } = await sql.query<LeafRow>(
    `select l.id, l.workspace_id as "workspaceId", l.hash, l.keep
       from leaf l left join audience_build b on b.id = l.build_id
      where l.workspace_id = $1 and b.phase is distinct from 'folding'
      order by l.id`,
    [workspaceId],
  )
  const keeps = new Map(rows.map(({ id, keep }) => [id, keep]))
  const find = leafFinder(rows, workspaceId)
  return (need) => {
    const id = find(need)
    return id === null ? null : { id, kind: kindOf(need.spec, keeps.get(id) as number) }
  }
}

/** The highest receivedAt folded into anybody: at an instant before it nobody can be evaluated. */
export const readFolded = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ at: number | null }>(
    `select max(case when octet_length(state) = 8
                     then ('x' || encode(state, 'hex'))::bit(64)::bigint end)::float8 as at
       from position where reader = 'project'`,
  )
  return rows[0]?.at ?? 0
}

type Named = Pick<Identity, 'workspaceId' | 'kind' | 'value'>

/** Whoever the identity belongs to by now. */
export const readUser = async (sql: Sql, named: Named): Promise<UserState | null> => {
  const { rows } = await sql.query<{ user: Buffer }>(
    `select ${packedUser} as user
       from identity i join ustate u on u.user_key = i.user_key
      where i.workspace_id = $1 and i.kind = $2 and i.value = $3 and u.merged_into is null`,
    [named.workspaceId, identityKinds[named.kind], named.value],
  )
  const [row] = rows
  return row === undefined ? null : (readRows(row.user)[0]?.user ?? null)
}

export type Membership = {
  readonly member: boolean
  readonly enteredAt: Date | null
  /** Whether destinations were told. */
  readonly synced: boolean
}

/** As last worked out; `null` for who is no member, and was not told to be one. */
export const readMembership = async (
  sql: Sql,
  of: { readonly audienceId: number; readonly userKey: number },
): Promise<Membership | null> => {
  const { rows } = await sql.query<Membership>(
    `select cur as member, case when cur then entered_at end as "enteredAt", synced
       from membership where audience_id = $1 and user_key = $2`,
    [of.audienceId, of.userKey],
  )
  return rows[0] ?? null
}
