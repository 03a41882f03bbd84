// Rebuilds as the admin API makes, shows and steers them; the rebuild stage works them.
import type { Sql } from '../postgres/sql.ts'

export const rebuildStates = [
  ...(['requested', 'folding', 'comparing', 'differs', 'swapping'] as const),
  ...(['swapped', 'verified', 'cancelled', 'failed'] as const),
] as const

/** A user who is not the same in both; what the two say of them. */
export type Difference = {
  readonly workspaceId: number
  /** "0:…" a user id, "1:…" an anonymous id. */
  readonly identity: string
  readonly parts: readonly string[]
  readonly live: object | null
  readonly rebuilt: object | null
}

export type RebuildView = {
  readonly id: number
  readonly state: (typeof rebuildStates)[number]
  readonly actor: string
  readonly verifyOnly: boolean
  readonly fromKept: boolean
  readonly acceptsDifferences: boolean
  readonly createdAt: Date
  readonly endedAt: Date | null
  readonly reason: string | null
  readonly comparedAt: Date | null
  readonly users: number | null
  readonly differing: number | null
  readonly differences: readonly Difference[] | null
}

type Wish = {
  readonly actor: string
  readonly at: Date
  readonly verifyOnly: boolean
  readonly fromKept: boolean
  readonly acceptsDifferences: boolean
}

/** `null` while another one is open. */
export const requestRebuild = async (sql: Sql, wish: Wish): Promise<number | null> => {
  const { rows } = await sql.query<{ id: number }>(
    `insert into rebuild (state, actor, verify_only, from_kept, accepts_differences, created_at)
     values ('requested', $1, $2, $3, $4, $5) on conflict do nothing returning id`,
    [wish.actor, wish.verifyOnly, wish.fromKept, wish.acceptsDifferences, wish.at],
  )
  return rows[0]?.id ?? null
}

const select = `select id, state, actor, verify_only as "verifyOnly", from_kept as "fromKept",
    accepts_differences as "acceptsDifferences", created_at as "createdAt", ended_at as "endedAt",
    reason, compared_at as "comparedAt", users::float8 as users, differing::float8 as differing,
    differences from rebuild`

export const findRebuild = async (sql: Sql, id: number): Promise<RebuildView | null> => {
  const { rows } = await sql.query<RebuildView>(`${select} where id = $1`, [id])
  return rows[0] ?? null
}

/** Newest first. */
export const loadRebuilds = async (sql: Sql, limit: number): Promise<readonly RebuildView[]> => {
  const { rows } = await sql.query<RebuildView>(`${select} order by id desc limit $1`, [limit])
  return rows
}

export type Progress = { readonly folded: number; readonly live: number }

/** In offsets, of all partitions; `null` while, or once, there is nothing folded. */
export const readProgress = async (sql: Sql, id: number): Promise<Progress | null> => {
  const sum = (schema: string) =>
    `(select coalesce(sum(next), 0)::float8 from ${schema}position where reader = 'project')`
  const schema = `rebuild_${id}`
  const { rowCount } = await sql.query('select 1 from pg_namespace where nspname = $1', [schema])
  if (rowCount === 0) return null
  const { rows } = await sql.query<Progress>(
    `select ${sum(`${schema}.`)} as folded, ${sum('')} as live`,
  )
  return rows[0] as Progress
}

/** `false` when it is over, or is being swapped in right now and then is. */
export const cancelRebuild = async (sql: Sql, id: number, at: Date): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update rebuild set state = 'cancelled', ended_at = $2
      where id = $1 and state in ('requested', 'folding', 'comparing', 'differs', 'swapping')`,
    [id, at],
  )
  return rowCount === 1
}

/** Goes on from where it differed, and will be swapped in whatever differs; `false` where it does not differ. */
export const acceptRebuild = async (sql: Sql, id: number): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update rebuild set state = 'folding', accepts_differences = true
      where id = $1 and state = 'differs'`,
    [id],
  )
  return rowCount === 1
}
