// The SQL of pipeline counters: adding what one process counted, and forgetting old hours.
import type { Counted } from '../domain/pipeline.ts'
import type { Sql } from '../postgres/sql.ts'

export type HourCount = Counted & { readonly hour: Date; readonly amount: number }

/** In the order of the key: processes that add to the same rows wait for one another, never in a circle. */
export const addCounts = async (sql: Sql, counts: readonly HourCount[]): Promise<void> => {
  if (counts.length === 0) return
  await sql.query(
    `insert into pipeline_count (hour, source_id, destination_id, step, type, reason, amount)
     select * from unnest($1::timestamptz[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[])
       as c(hour, source_id, destination_id, step, type, reason, amount)
      order by hour, source_id, destination_id, step, type, reason
     on conflict (hour, source_id, destination_id, step, type, reason)
       do update set amount = pipeline_count.amount + excluded.amount`,
    [
      counts.map(({ hour }) => hour),
      counts.map(({ sourceId }) => sourceId),
      counts.map(({ destinationId }) => destinationId ?? 0),
      counts.map(({ step }) => step),
      counts.map(({ type }) => type),
      counts.map(({ reason }) => reason ?? ''),
      counts.map(({ amount }) => amount),
    ],
  )
}

/** By pipeline_count_pkey, which begins with the hour. */
export const deleteCountsBefore = async (sql: Sql, hour: Date): Promise<void> => {
  await sql.query('delete from pipeline_count where hour < $1', [hour])
}
