// Looks through everything in Postgres for an id: every row of every table as text, bytes as hex; log tables apart.
import type { Sql } from '../postgres/sql.ts'

export type Trace = { readonly table: string; readonly rows: number }

/** The log keeps what it was given until its retention ends; what is configured is not a user's. */
const apart = /^(log_|position$)/

/** A scan of the whole database. */
export const findTraces = async (sql: Sql, id: string): Promise<readonly Trace[]> => {
  const { rows: tables } = await sql.query<{ name: string }>(
    `select c.relname as name from pg_class c
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
        and not c.relispartition order by 1`,
  )
  // As it stands in a row's text: quotes and backslashes are doubled there, and in JSON escaped.
  const forms = [id, JSON.stringify(id).slice(1, -1), Buffer.from(id).toString('hex')]
  const traces: Trace[] = []
  for (const { name } of tables.filter((table) => !apart.test(table.name))) {
    const { rows } = await sql.query<{ count: number }>(
      `select count(*)::int as count from "${name}" t
        where exists (select from unnest($1::text[]) as f(form) where position(f.form in t::text) > 0)`,
      [[...new Set(forms)]],
    )
    const count = rows[0]?.count ?? 0
    if (count > 0) traces.push({ table: name, rows: count })
  }
  return traces
}
