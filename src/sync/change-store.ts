// The SQL that keeps changes of membership counts few while no run takes them up.
import type { Sql } from '../postgres/sql.ts'

/** Those of one audience become one. Whoever takes them up meanwhile takes the old ones or the new. */
export const gatherChanges = async (sql: Sql, changesMax: number): Promise<void> => {
  await sql.query(
    `with taken as (
       delete from membership_change
        where exists (select from membership_change offset $1 limit 1)
       returning audience_id, members, anonymous
     )
     insert into membership_change (audience_id, members, anonymous)
     select audience_id, sum(members), sum(anonymous) from taken group by audience_id
     having sum(members) <> 0 or sum(anonymous) <> 0`,
    [changesMax],
  )
}
