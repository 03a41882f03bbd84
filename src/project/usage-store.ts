// The SQL of metering: what a batch adds, and folding the ids seen into pages.
import { numberList } from '../audience/lists.ts'
import type { SipKey } from '../domain/siphash.ts'
import { dayName, type Tracked, usageKeyOf } from '../domain/usage.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Metered } from './meter.ts'

/** What ids are hashed with; made by the migration. */
export const loadUsageKey = async (sql: Sql): Promise<SipKey> => {
  const { rows } = await sql.query<{ key: string }>('select key from usage_key')
  return usageKeyOf((rows[0] as { key: string }).key)
}

/** In the batch's transaction; `writer` is one of the partitions it has locked. */
export const saveMetered = async (
  tx: Sql,
  { calls, entries }: Metered,
  writer: string,
): Promise<void> => {
  if (calls.length === 0) return
  await tx.query(
    `with counted as (
       insert into usage_call (workspace_id, source_id, day, type, writer, calls)
       select c.workspace_id, c.source_id, c.day, c.type, $6, c.calls
         from unnest($1::int[], $2::int[], $3::date[], $4::text[], $5::bigint[])
           as c(workspace_id, source_id, day, type, calls)
       on conflict (workspace_id, day, source_id, type, writer)
         do update set calls = usage_call.calls + excluded.calls
     )
     insert into usage_sighting (workspace_id, month, entries)
     select * from unnest($7::int[], $8::int[], $9::bytea[])`,
    [
      numberList(calls.map(({ workspaceId }) => workspaceId)),
      numberList(calls.map(({ sourceId }) => sourceId)),
      calls.map(({ day }) => dayName(day)),
      calls.map(({ type }) => type),
      numberList(calls.map((counted) => counted.calls)),
      writer,
      numberList(entries.map(({ workspaceId }) => workspaceId)),
      numberList(entries.map(({ month }) => month)),
      entries.map((each) => each.entries),
    ],
  )
}

export type Month = { readonly workspaceId: number; readonly month: number }

export type Unfolded = Month & {
  readonly rows: number
  readonly bytes: number
  /** In its pages. */
  readonly foldedBytes: number
}

/** The months whose ids are not all in pages. */
export const loadUnfolded = async (sql: Sql): Promise<readonly Unfolded[]> => {
  const { rows } = await sql.query<Unfolded>(
    `select s.workspace_id as "workspaceId", s.month, s.rows, s.bytes, coalesce(p.bytes, 0) as "foldedBytes"
       from (select workspace_id, month, count(*)::int as rows,
                    sum(octet_length(entries))::float8 as bytes
               from usage_sighting group by workspace_id, month) s
       left join lateral (
         select sum(octet_length(entries))::float8 as bytes from usage_page
          where workspace_id = s.workspace_id and month = s.month) p on true`,
  )
  return rows
}

/** 'USAGE' read as a number: whoever has it folds, the others come again later. */
const lockKey = '366178552645'

export const tryFoldLock = async (tx: Sql): Promise<boolean> => {
  const { rows } = await tx.query<{ locked: boolean }>(
    `select pg_try_advisory_xact_lock(${lockKey}) as locked`,
  )
  return rows[0]?.locked === true
}

/** Takes the oldest out. */
export const takeSightings = async (
  tx: Sql,
  { workspaceId, month, limit }: Month & { readonly limit: number },
): Promise<readonly Buffer[]> => {
  const { rows } = await tx.query<{ entries: Buffer }>(
    `delete from usage_sighting where id in (
       select id from usage_sighting where workspace_id = $1 and month = $2 order by id limit $3)
     returning entries`,
    [workspaceId, month, limit],
  )
  return rows.map(({ entries }) => entries)
}

export const insertSighting = async (
  tx: Sql,
  { workspaceId, month, entries }: Month & { readonly entries: Buffer },
): Promise<void> => {
  await tx.query('insert into usage_sighting (workspace_id, month, entries) values ($1, $2, $3)', [
    workspaceId,
    month,
    entries,
  ])
}

export type Page = Tracked & { readonly page: number; readonly entries: Buffer }

export const loadPages = async (
  sql: Sql,
  { workspaceId, month, pages }: Month & { readonly pages: readonly number[] },
): Promise<ReadonlyMap<number, Buffer>> => {
  const { rows } = await sql.query<{ page: number; entries: Buffer }>(
    `select page, entries from usage_page
      where workspace_id = $1 and month = $2 and page = any($3)`,
    [workspaceId, month, pages],
  )
  return new Map(rows.map(({ page, entries }) => [page, entries]))
}

export const savePages = async (
  tx: Sql,
  { workspaceId, month, pages }: Month & { readonly pages: readonly Page[] },
): Promise<void> => {
  await tx.query(
    `insert into usage_page (workspace_id, month, page, entries, user_ids, anonymous_ids)
     select $1, $2, p.* from unnest($3::smallint[], $4::bytea[], $5::int[], $6::int[]) as p
     on conflict (workspace_id, month, page) do update
       set (entries, user_ids, anonymous_ids)
         = (excluded.entries, excluded.user_ids, excluded.anonymous_ids)`,
    [
      workspaceId,
      month,
      pages.map(({ page }) => page),
      pages.map(({ entries }) => entries),
      pages.map(({ userIds }) => userIds),
      pages.map(({ anonymousIds }) => anonymousIds),
    ],
  )
}
