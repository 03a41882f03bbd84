// Deletion requests as the admin API reads them.
import type { RequestKind, RequestState } from '../erase/request.ts'
import type { RequestStep } from '../erase/request-store.ts'
import type { Sql } from '../postgres/sql.ts'

type Told = {
  readonly sourceId: number
  readonly destinationId: number
  readonly notices: number
}

export type DeletionRow = {
  readonly id: number
  readonly workspaceId: number
  readonly kind: RequestKind
  readonly origin: 'call' | 'api'
  /** `null` when it was made by this API. */
  readonly sourceId: number | null
  readonly state: RequestState
  readonly step: RequestStep
  readonly reason: string | null
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly erasedAt: Date | null
  readonly finishedAt: Date | null
  /** While they are known: the first hundred. */
  readonly userIds: readonly string[]
  readonly anonymousIds: readonly string[]
  readonly ids: number
  /** Those of the profiles, which are not counted in `ids`. */
  readonly found: number
  /** Ids whose place in the log has been reached. */
  readonly reached: number
  readonly stores: Readonly<Record<string, number>>
  readonly told: readonly Told[]
  /** Notices not in the log yet, by destination. */
  readonly pending: Readonly<Record<string, number>>
}

const shownMax = 100

const valuesOf = (kind: number) =>
  `array(select s.value from deletion_subject s
          where s.request_id = r.id and s.kind = ${kind} and not s.found and s.value is not null
          order by s.n limit ${shownMax})`

const countOf = (what: string) =>
  `(select count(*)::int from deletion_subject s where s.request_id = r.id and ${what})`

const columns = `r.id, r.workspace_id as "workspaceId", r.kind, r.origin, r.source_id as "sourceId",
  r.state, r.step, r.reason, r.created_at as "createdAt", r.started_at as "startedAt",
  r.erased_at as "erasedAt", r.finished_at as "finishedAt", r.stores,
  ${valuesOf(0)} as "userIds", ${valuesOf(1)} as "anonymousIds",
  ${countOf('not s.found')} as ids, ${countOf('s.found')} as found,
  ${countOf('s.log_offset is not null')} as reached,
  coalesce((select json_agg(json_build_object('sourceId', n.source_id, 'destinationId',
      n.destination_id, 'notices', n.notices) order by n.source_id, n.destination_id)
     from deletion_notice n where n.request_id = r.id), '[]') as told,
  coalesce((select json_object_agg(o.destination_id, o.count)
     from (select destination_id, count(*)::int as count from outbox
            where run_id = -r.id group by 1) o), '{}') as pending`

type Page = {
  /** `null`: of all. */
  readonly workspaceId: number | null
  readonly before: number | null
  readonly limit: number
}

/** Newest first. */
export const loadDeletions = async (sql: Sql, page: Page): Promise<readonly DeletionRow[]> => {
  const { rows } = await sql.query<DeletionRow>(
    `select ${columns} from deletion_request r
      where ($1::int is null or r.workspace_id = $1) and ($2::int is null or r.id < $2)
      order by r.id desc limit $3`,
    [page.workspaceId, page.before, page.limit],
  )
  return rows
}

export const findDeletion = async (sql: Sql, id: number): Promise<DeletionRow | null> => {
  const { rows } = await sql.query<DeletionRow>(
    `select ${columns} from deletion_request r where r.id = $1`,
    [id],
  )
  return rows[0] ?? null
}
