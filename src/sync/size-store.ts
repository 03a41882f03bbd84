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
 * Adds up what changed since the last run that did, whichever audiences that was of. Done once the run
 * has ended, so nothing waits for it; a run that ended just before its process did goes uncounted, and
 * its changes are in the next one's.
 */
export const saveSizes = async (
  sql: Sql,
  { runId, at, audienceIds, kept }: Sizes,
): Promise<void> => {
  if (audienceIds.length === 0) return
  await sql.query(
    `with taken as (
       delete from membership_change returning audience_id, members, anonymous
     ), counted as (
       insert into membership_count as c (audience_id, members, anonymous)
       select audience_id, sum(members), sum(anonymous) from taken group by audience_id
       on conflict (audience_id) do update
         set members = c.members + excluded.members, anonymous = c.anonymous + excluded.anonymous
       returning audience_id, members, anonymous
     )
     insert into audience_size (audience_id, run_id, at, members, anonymous)
     select s.audience_id, $2, $3, coalesce(n.members, c.members, 0),
            coalesce(n.anonymous, c.anonymous, 0)
       from audience_state s
       left join counted n on n.audience_id = s.audience_id
       left join membership_count c on c.audience_id = s.audience_id
      where s.audience_id = any($1)
     on conflict do nothing`,
    [audienceIds, runId, at],
  )
  // What a deleted audience leaves behind is nobody’s count.
  await sql.query(
    `delete from membership_count c
      where not exists (select 1 from audience_state s where s.audience_id = c.audience_id)`,
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
