// What is not in the log of memberships: what receivers were told, since when somebody is a member, and who
// is in audiences of accounts as the last sync left it. Copied by user id: keys differ between the two.
import { shards } from '../audience/state.ts'
import type { Sql } from '../postgres/sql.ts'

/** Schemas. */
export type Sides = { readonly live: string; readonly fresh: string }

/**
 * As often as one likes: a later time writes only what changed since. `synced` tells the next sync whom
 * to tell of what; who was told of something and is not there any more is told to have left.
 */
export const copyMarks = async (tx: Sql, sides: Sides): Promise<void> => {
  for (const statement of [
    forgetNobodys,
    tellTold,
    untellOthers,
    copyAccounts,
    forgetEmpty,
    copyEntries,
  ])
    await tx.query(statement(sides))
}

type Statement = (sides: Sides) => string

/** Rows of an earlier copy that stand for nobody rebuilt: they are made again where they still hold. */
const forgetNobodys: Statement = ({ fresh }) => `
  delete from ${fresh}.membership m
   where m.synced and not m.cur and not exists (
     select 1 from ${fresh}.ustate u where u.user_key = m.user_key and u.merged_into is null)`

/** Under a key of nobody where no rebuilt user has the name. */
const tellTold: Statement = ({ live, fresh }) => `
  with told as materialized (
    select distinct on (m.audience_id, m.user_id)
           m.audience_id, m.user_id, m.synced_value, s.workspace_id
      from ${live}.membership m join ${live}.audience_state s using (audience_id)
     where m.synced and m.user_id is not null
     order by m.audience_id, m.user_id, m.cur desc
  ), placed as materialized (
    select t.audience_id, t.user_id, t.synced_value,
           case when u.user_key is null then nextval('${live}.user_key') * 1000 else u.user_key end
             as user_key
      from told t
      left join ${fresh}.identity i
        on i.workspace_id = t.workspace_id and i.kind = 0 and i.value = t.user_id collate "C"
      left join ${fresh}.ustate u
        on u.user_key = i.user_key and u.merged_into is null and u.user_id = t.user_id
  )
  insert into ${fresh}.membership as m
    (audience_id, shard, user_key, user_id, cur, synced, synced_value)
  select audience_id, user_key % ${shards}, user_key, user_id, false, true, synced_value from placed
  on conflict (audience_id, user_key) do update
    set synced = true, synced_value = excluded.synced_value
   where not m.synced or m.synced_value is distinct from excluded.synced_value`

/** Those who were told of since the copy before that they left. */
const untellOthers: Statement = ({ live, fresh }) => `
  with others as (
    select m.audience_id, m.user_key from ${fresh}.membership m
     where m.synced and not exists (
       select 1 from ${live}.membership l
        where l.audience_id = m.audience_id and l.user_id = m.user_id and l.synced)
  ), gone as (
    delete from ${fresh}.membership m using others o
     where (m.audience_id, m.user_key) = (o.audience_id, o.user_key) and not m.cur
  )
  update ${fresh}.membership m set synced = false, synced_value = null from others o
   where (m.audience_id, m.user_key) = (o.audience_id, o.user_key) and m.cur`

const ofAccounts = (live: string) =>
  `select audience_id from ${live}.audience_state where condition ? 'users'`

/** The sync decides of them; it looks at everybody with an account again. */
const copyAccounts: Statement = ({ live, fresh }) => `
  with held as materialized (
    select m.audience_id, m.user_id, m.entered_at, i.user_key
      from ${live}.membership m
      join ${live}.audience_state s using (audience_id)
      join ${fresh}.identity i
        on i.workspace_id = s.workspace_id and i.kind = 0 and i.value = m.user_id collate "C"
      join ${fresh}.ustate u on u.user_key = i.user_key and u.user_id = m.user_id
     where m.cur and m.audience_id in (${ofAccounts(live)})
  ), left_since as (
    update ${fresh}.membership m set cur = false
     where m.cur and m.audience_id in (${ofAccounts(live)})
       and (m.audience_id, m.user_key) not in (select audience_id, user_key from held)
  )
  insert into ${fresh}.membership as m
    (audience_id, shard, user_key, user_id, cur, synced, entered_at)
  select audience_id, user_key % ${shards}, user_key, user_id, true, false, entered_at from held
  on conflict (audience_id, user_key) do update set cur = true where not m.cur`

const forgetEmpty: Statement = ({ fresh }) =>
  `delete from ${fresh}.membership where not cur and not synced`

const copyEntries: Statement = ({ live, fresh }) => `
  update ${fresh}.membership m set entered_at = l.entered_at
    from ${live}.membership l
   where l.audience_id = m.audience_id and l.user_id = m.user_id and l.cur and m.cur
     and m.entered_at is distinct from l.entered_at`
