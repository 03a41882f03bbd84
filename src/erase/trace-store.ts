// The SQL of all other places where ids of an erased user may stand.
import type { Pool } from '../postgres/sql.ts'
import type { Forgotten } from './forgotten.ts'
import { idForms } from './id-forms.ts'

const rowsAtOnce = 5_000
const blocksAtOnce = 256

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

/**
 * Those of the user's chains go. Of others' the answer goes, where it has one of the ids. No index finds either:
 * the log is read once, so many blocks of every day at a time.
 */
export const eraseAttempts = async (pool: Pool, forgotten: Forgotten): Promise<number> => {
  const { rows } = await pool.query<{ blocks: number }>(
    `select coalesce(max(pg_relation_size(relid) / current_setting('block_size')::int), 0)::int as blocks
       from pg_partition_tree('attempt') where isleaf`,
  )
  const blocks = rows[0]?.blocks ?? 0
  let erased = 0
  for (let from = 0; from < blocks; from += blocksAtOnce) {
    const within = [`(${from},0)`, `(${from + blocksAtOnce},0)`]
    erased += await eraseOwnAttempts(pool, forgotten, within)
    erased += await eraseAnswers(pool, forgotten, within)
  }
  return erased
}

const eraseOwnAttempts = async (
  pool: Pool,
  { chains }: Forgotten,
  within: readonly string[],
): Promise<number> => {
  const { rowCount } = await pool.query(
    `delete from attempt where ctid >= $1::tid and ctid < $2::tid and chain = any($3::bigint[])`,
    [...within, [...chains]],
  )
  return rowCount ?? 0
}

/**
 * What a receiver answered with an id in it, anywhere: no rule of words finds every id (in JSON `\nu1` is one).
 * A short id stands in many answers that speak of somebody else, whose attempts stay. Another workspace's ids
 * may be the same.
 */
const eraseAnswers = async (
  pool: Pool,
  forgotten: Forgotten,
  within: readonly string[],
): Promise<number> => {
  const { rowCount } = await pool.query(
    `update attempt a set response_head = null
      where a.ctid >= $1::tid and a.ctid < $2::tid and a.response_head is not null
        and exists (
          select from unnest($3::text[]) as i(id) where position(i.id in a.response_head) > 0)
        and not exists (
          select from destination d where d.id = a.destination_id and d.workspace_id <> $4)`,
    [...within, [...new Set(idsOf(forgotten).flatMap(idForms))], forgotten.workspaceId],
  )
  return rowCount ?? 0
}

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
