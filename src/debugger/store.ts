// The SQL of the debugger: which sources are watched, and the newest entries of each.
import type { Pool, Sql } from '../postgres/sql.ts'

export const channels = { watches: 'debugger_watch', entries: 'debugger_entry' } as const

/** Ids of entries: `began` is before the first, `last` the newest given. */
export type Watch = { readonly sourceId: number; readonly began: number; readonly last: number }

type Renewal = {
  readonly sourceIds: readonly number[]
  readonly at: Date
  readonly until: Date
  /** Processes are told at once of watches they may not know. */
  readonly isNew: boolean
}

/**
 * Microseconds of the epoch are where a watch begins to count: past every id that an earlier watch
 * of the source gave, and exact as a double for two centuries more.
 */
export const renewWatches = async (sql: Sql, renewal: Renewal): Promise<readonly Watch[]> => {
  const { sourceIds, at, until, isNew } = renewal
  const { rows } = await sql.query<{ sourceId: number; began: bigint; last: bigint }>(
    `insert into debugger_watch as w (source_id, until, began, last)
     select id, $2, $3, $3 from unnest($1::int[]) as s(id) order by id
         on conflict (source_id) do update set until = greatest(w.until, excluded.until)
     returning source_id as "sourceId", began, last`,
    [sourceIds, until, at.getTime() * 1_000],
  )
  if (isNew) await sql.query('select pg_notify($1, $2)', [channels.watches, ''])
  return rows.map(({ sourceId, began, last }) => ({
    sourceId,
    began: Number(began),
    last: Number(last),
  }))
}

type InForce = { readonly sourceId: number; readonly until: Date }

export const loadWatches = async (sql: Sql, at: Date, max: number): Promise<readonly InForce[]> => {
  const { rows } = await sql.query<InForce>(
    'select source_id as "sourceId", until from debugger_watch where until > $1 order by source_id limit $2',
    [at, max],
  )
  return rows
}

export type Written = {
  readonly sourceId: number
  /** Oldest first, as JSON. */
  readonly entries: readonly string[]
  /** Older than these, and lost: a hole in the ids. */
  readonly skipped: number
}

/** Of sources that nobody watches any more nothing is written. */
export const insertEntries = (
  pool: Pool,
  written: readonly Written[],
  keptMax: number,
): Promise<void> =>
  pool.transaction(async (tx) => {
    const { rows } = await tx.query<{ sourceId: number; last: bigint }>(
      `select source_id as "sourceId", last from debugger_watch
        where source_id = any($1) order by source_id for update`,
      [written.map(({ sourceId }) => sourceId)],
    )
    const lastOf = new Map(rows.map(({ sourceId, last }) => [sourceId, Number(last)]))
    const placed = written.flatMap(({ sourceId, entries, skipped }) => {
      const last = lastOf.get(sourceId)
      if (last === undefined) return []
      const from = last + skipped + 1
      lastOf.set(sourceId, last + skipped + entries.length)
      return entries.map((entry, at) => ({ sourceId, id: from + at, entry }))
    })
    const sourceIds = [...lastOf.keys()]
    await tx.query(
      `update debugger_watch w set last = g.last
         from unnest($1::int[], $2::bigint[]) as g(source_id, last)
        where w.source_id = g.source_id`,
      [sourceIds, sourceIds.map((sourceId) => lastOf.get(sourceId))],
    )
    await tx.query(
      `insert into debugger_entry (source_id, id, entry)
       select * from unnest($1::int[], $2::bigint[], $3::text[])`,
      [
        placed.map(({ sourceId }) => sourceId),
        placed.map(({ id }) => id),
        placed.map(({ entry }) => entry),
      ],
    )
    await tx.query(
      `delete from debugger_entry e
        using unnest($1::int[]) as s(id)
        where e.source_id = s.id
          and e.id <= (select k.id from debugger_entry k where k.source_id = s.id
                        order by k.id desc offset $2 limit 1)`,
      [sourceIds, keptMax],
    )
    for (const sourceId of sourceIds)
      await tx.query('select pg_notify($1, $2)', [channels.entries, String(sourceId)])
  })

export type StoredEntry = { readonly id: number; readonly entry: string }

type Reading = { readonly sourceId: number; readonly after: number; readonly limit: number }

/** By debugger_entry_pkey. */
export const loadEntries = async (
  sql: Sql,
  { sourceId, after, limit }: Reading,
): Promise<readonly StoredEntry[]> => {
  const { rows } = await sql.query<{ id: bigint; entry: string }>(
    'select id, entry from debugger_entry where source_id = $1 and id > $2 order by id limit $3',
    [sourceId, after, limit],
  )
  return rows.map(({ id, entry }) => ({ id: Number(id), entry }))
}

/** Also of watches that ended with their process. */
export const deleteEnded = async (sql: Sql, before: Date): Promise<void> => {
  await sql.query(
    `with ended as (delete from debugger_watch where until < $1 returning source_id)
     delete from debugger_entry where source_id in (select source_id from ended)`,
    [before],
  )
}
