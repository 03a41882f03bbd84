// Asking for a sync now, from the admin API or the CLI, and seeing how it went.
import type { Sql } from '../postgres/sql.ts'

/** Notified with a run's id when it is requested. */
export const syncChannel = 'millrace_sync'

/** Notified with a run's id when it has finished or failed. */
export const syncEndedChannel = 'millrace_sync_ended'

export type SyncRequest = {
  readonly audienceIds: readonly number[]
  readonly at: Date
  /** Destinations are told of every member as one that joins is, not only of changes. */
  readonly allMembers?: boolean
}

/**
 * Returns the run's id. The sync starts once each of its audiences has complete membership. A run that is
 * underway and tells of all members already cannot move a place that was set back meanwhile.
 */
export const requestSync = async (sql: Sql, request: SyncRequest): Promise<number> => {
  const { rows } = await sql.query<{ id: bigint }>(
    `with run as (
       insert into sync_run (state, audience_ids, requested_at) values ('requested', $1, $2)
       returning id
     ), again as (
       update sync_destination set after = 0 where $3 and audience_id = any($1)
     )
     select id, pg_notify('${syncChannel}', id::text) from run`,
    [[...new Set(request.audienceIds)], request.at, request.allMembers ?? false],
  )
  return Number((rows[0] as { id: bigint }).id)
}

export type SyncRun = {
  readonly id: number
  /** 'finished' only once every message of the run is in topic `outbound`. */
  readonly state: 'requested' | 'running' | 'finished' | 'failed'
  readonly audienceIds: readonly number[]
  readonly requestedAt: Date | null
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  /** Messages decided so far. */
  readonly emitted: number
  /** Why it failed. */
  readonly reason: string | null
}

export const findSyncRun = async (sql: Sql, id: number): Promise<SyncRun | null> => {
  const { rows } = await sql.query<SyncRun>(
    `select id::float8 as id, state, audience_ids as "audienceIds", requested_at as "requestedAt",
            started_at as "startedAt", finished_at as "finishedAt", reason,
            coalesce((select sum(emitted) from sync_chunk c where c.run_id = r.id), 0)::float8
              as emitted
       from sync_run r where id = $1`,
    [id],
  )
  return rows[0] ?? null
}
