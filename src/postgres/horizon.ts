// How long the oldest snapshot has been held: what died since then no vacuum can remove.
import type { Sql } from './sql.ts'

/**
 * Seconds, over the sessions, prepared transactions and replication slots of the whole server: any of them
 * keeps dead rows of `parked` in the way of every claim.
 */
export const snapshotAge = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ seconds: number }>(
    `with oldest as (
       select xact_start as since from pg_stat_activity
        where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid()
       union all
       select prepared from pg_prepared_xacts
     )
     select coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as seconds from oldest`,
  )
  return Math.max(0, rows[0]?.seconds ?? 0)
}
