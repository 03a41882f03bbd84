// Deletion requests as the admin API reads and enters them; those made by calls are the projector's.
import type { Sql } from '../postgres/sql.ts'

export type DeletionRequest = {
  readonly id: number
  readonly workspaceId: number
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly origin: 'call' | 'api'
  /** `null` when it was made by this API. */
  readonly sourceId: number | null
  readonly state: 'received'
  readonly createdAt: Date
}

const columns = `id, workspace_id as "workspaceId", user_id as "userId", anonymous_id as "anonymousId",
  origin, source_id as "sourceId", state, created_at as "createdAt"`

type Page = {
  /** `null`: of all. */
  readonly workspaceId: number | null
  readonly before: number | null
  readonly limit: number
}

/** Newest first. */
export const loadDeletions = async (sql: Sql, page: Page): Promise<readonly DeletionRequest[]> => {
  const { rows } = await sql.query<DeletionRequest>(
    `select ${columns} from deletion_request
      where ($1::int is null or workspace_id = $1) and ($2::int is null or id < $2)
      order by id desc limit $3`,
    [page.workspaceId, page.before, page.limit],
  )
  return rows
}

export const findDeletion = async (sql: Sql, id: number): Promise<DeletionRequest | null> => {
  const { rows } = await sql.query<DeletionRequest>(
    `select ${columns} from deletion_request where id = $1`,
    [id],
  )
  return rows[0] ?? null
}

type Wish = Pick<DeletionRequest, 'workspaceId' | 'userId' | 'anonymousId' | 'createdAt'>

export const insertDeletion = async (sql: Sql, wish: Wish): Promise<DeletionRequest> => {
  const { rows } = await sql.query<DeletionRequest>(
    `insert into deletion_request (workspace_id, user_id, anonymous_id, origin, created_at)
     values ($1, $2, $3, 'api', $4) returning ${columns}`,
    [wish.workspaceId, wish.userId, wish.anonymousId, wish.createdAt],
  )
  return rows[0] as DeletionRequest
}
