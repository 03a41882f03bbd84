// The SQL that replays and recoveries share: one of them, a page of them, and what steering one says.
import type { Sql } from '../postgres/sql.ts'

export type Page = {
  /** `null`: of all. */
  readonly destinationId: number | null
  readonly before: number | null
  readonly limit: number
}

export type Steering<S extends string> = {
  readonly id: number
  readonly from: readonly S[]
  readonly to: S
  readonly at: Date
}

/** `select`: columns and tables of the kind, its own one as `r`. */
export const findJob = async <T extends object>(
  sql: Sql,
  select: string,
  id: number,
): Promise<T | null> => {
  const { rows } = await sql.query<T>(`${select} where r.id = $1`, [id])
  return rows[0] ?? null
}

/** Newest first. */
export const loadJobs = async <T extends object>(
  sql: Sql,
  select: string,
  page: Page,
): Promise<readonly T[]> => {
  const { rows } = await sql.query<T>(
    `${select} where ($1::int is null or r.destination_id = $1) and ($2::int is null or r.id < $2)
      order by r.id desc limit $3`,
    [page.destinationId, page.before, page.limit],
  )
  return rows
}
