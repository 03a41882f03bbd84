// The SQL of sizes: how many users an audience had at the end of each of its runs.
import type { Sql } from '../postgres/sql.ts'

type Sizes = {
  readonly runId: number
  readonly at: Date
  readonly audienceIds: readonly number[]
  /** Counts of one audience that are kept. */
  readonly kept: number
}

/**
 * Counts once the run has ended, so nothing waits for it: it reads every membership row of these audiences.
 * A run that ended just before its process did goes uncounted.
 */
export const saveSizes = async (
  sql: Sql,
  { runId, at, audienceIds, kept }: Sizes,
): Promise<void> => {
  if (audienceIds.length === 0) return
  await sql.query(
    `insert into audience_size (audience_id, run_id, at, members, anonymous)
     select s.audience_id, $2, $3, count(*) filter (where m.cur),
            count(*) filter (where m.cur and m.user_id is null)
       from audience_state s left join membership m on m.audience_id = s.audience_id
      where s.audience_id = any($1)
      group by s.audience_id
     on conflict do nothing`,
    [audienceIds, runId, at],
  )
  // The oldest kept is looked up once for each audience, along its key.
  await sql.query(
    `delete from audience_size z
      using unnest($1::int[]) as w(id), lateral (
        select o.run_id from audience_size o where o.audience_id = w.id
         order by o.run_id desc offset $2 limit 1) as last
      where z.audience_id = w.id and z.run_id <= last.run_id`,
    [audienceIds, kept],
  )
}
