// The SQL of all other places where ids of an erased user may stand.
import type { Pool } from '../postgres/sql.ts'
import type { Forgotten } from './forgotten.ts'
import { idForms } from './id-forms.ts'

const rowsAtOnce = 5_000

type Erasing = { readonly text: string; readonly values: readonly unknown[] }

/** A statement that erases from at most so many rows, until it finds no more. */
const eraseAll = async (pool: Pool, { text, values }: Erasing): Promise<number> => {
  for (let erased = 0; ; ) {
    const { rowCount } = await pool.query(text, [...values, rowsAtOnce])
    erased += rowCount ?? 0
    if ((rowCount ?? 0) < rowsAtOnce) return erased
  }
}

/** Messages that sync decided on before the profile was gone. Notices stay. */
export const eraseOutbox = (pool: Pool, { workspaceId, userIds }: Forgotten): Promise<number> =>
  eraseAll(pool, {
    text: `delete from outbox where (shard, seq) in (
             select shard, seq from outbox
              where workspace_id = $1 and user_id = any($2::text[]) and origin <> 'notice' limit $3)`,
    values: [workspaceId, [...userIds]],
  })

/** Those of the user's chains go. Of others' the answer goes, where it has one of the ids. */
export const eraseAttempts = async (pool: Pool, forgotten: Forgotten): Promise<number> =>
  (await eraseOwnAttempts(pool, forgotten)) + (await eraseAnswers(pool, forgotten))

const eraseOwnAttempts = (pool: Pool, { chains }: Forgotten): Promise<number> =>
  eraseAll(pool, {
    text: `delete from attempt where (tableoid, ctid) in (
             select a.tableoid, a.ctid from attempt a where a.chain = any($1::bigint[]) limit $2)`,
    values: [[...chains]],
  })

/**
 * What a receiver answered with an id in it, anywhere: no rule of words finds every id (in JSON `\nu1` is one).
 * A short id stands in many answers that speak of somebody else, whose attempts stay. Another workspace's ids
 * may be the same.
 */
const eraseAnswers = (pool: Pool, forgotten: Forgotten): Promise<number> =>
  eraseAll(pool, {
    text: `update attempt set response_head = null where (tableoid, ctid) in (
             select a.tableoid, a.ctid from attempt a
              where a.response_head is not null and exists (
                select from unnest($1::text[]) as i(id) where position(i.id in a.response_head) > 0)
                and not exists (
                  select from destination d where d.id = a.destination_id and d.workspace_id <> $2)
              limit $3)`,
    values: [
      [...new Set(idsOf(forgotten).flatMap(idForms))],
      forgotten.workspaceId,
    ],
  })

/** Whom replays were asked for: one that is left without any id selects nobody. */
export const eraseReplays = async (
  pool: Pool,
  { workspaceId, userIds, anonymousIds }: Forgotten,
): Promise<number> => {
  const { rowCount } = await pool.query(
    `update replay set
       user_ids = array(select id from unnest(user_ids) as u(id) where id <> all($2::text[])),
       anonymous_ids = array(select id from unnest(anonymous_ids) as a(id) where id <> all($3::text[]))
      where workspace_id = $1 and (user_ids && $2::text[] or anonymous_ids && $3::text[])`,
    [workspaceId, [...userIds], [...anonymousIds]],
  )
  return rowCount ?? 0
}

export const eraseDebugger = (pool: Pool, forgotten: Forgotten): Promise<number> =>
  eraseAll(pool, {
    text: `delete from debugger_entry where (source_id, id) in (
             select e.source_id, e.id from debugger_entry e
               join source s on s.id = e.source_id and s.workspace_id = $1
              where exists (
                select from unnest($2::text[]) as i(id) where position(i.id in e.entry) > 0)
              limit $3)`,
    values: [forgotten.workspaceId, idsOf(forgotten).map((id) => JSON.stringify(id))],
  })

const idsOf = ({ userIds, anonymousIds }: Forgotten): readonly string[] => [
  ...new Set([...userIds, ...anonymousIds]),
]
