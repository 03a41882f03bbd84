// The schema that a rebuild folds into: its tables are made like the live ones, found in the catalogue.
import type { Sql } from '../postgres/sql.ts'

export const schemaOf = (id: number): string => `rebuild_${id}`

/** Where the live tables go when the new ones come in, until they are dropped. */
export const formerOf = (id: number): string => `rebuild_${id}_former`

export const liveSchema = async (sql: Sql): Promise<string> => {
  const { rows } = await sql.query<{ name: string }>('select current_schema() as name')
  return (rows[0] as { name: string }).name
}

type Fresh = { readonly schema: string; readonly tables: readonly string[] }

/** Indexes and constraints get the names that they have in the live schema: later migrations say them. */
export const makeSchema = async (tx: Sql, { schema, tables }: Fresh): Promise<void> => {
  await tx.query(`create schema ${schema}`)
  for (const table of tables)
    await tx.query(
      `create table ${schema}.${table} (like ${table} including all excluding indexes)`,
    )
  for (const statement of [
    ...(await storageOf(tx, { schema, tables })),
    ...(await constraintsOf(tx, { schema, tables })),
    ...(await indexesOf(tx, { schema, tables })),
  ])
    await tx.query(statement)
}

/** Each with the live table's options, which LIKE leaves out. */
const storageOf = async (tx: Sql, { schema, tables }: Fresh): Promise<readonly string[]> => {
  const { rows } = await tx.query<{ name: string; options: readonly string[] }>(
    `select relname as name, reloptions as options from pg_class
      where relnamespace = current_schema()::regnamespace and relname = any($1)
        and reloptions is not null`,
    [tables],
  )
  return rows.map(
    ({ name, options }) => `alter table ${schema}.${name} set (${options.join(', ')})`,
  )
}

const constraintsOf = async (tx: Sql, { schema, tables }: Fresh): Promise<readonly string[]> => {
  const { rows } = await tx.query<{ table: string; name: string; definition: string }>(
    `select c.relname as table, o.conname as name, pg_get_constraintdef(o.oid) as definition
       from pg_constraint o join pg_class c on c.oid = o.conrelid
      where c.relnamespace = current_schema()::regnamespace and c.relname = any($1)
        and o.contype in ('p', 'u')
      order by c.relname, o.conname`,
    [tables],
  )
  return rows.map(
    ({ table, name, definition }) =>
      `alter table ${schema}.${table} add constraint ${name} ${definition}`,
  )
}

const indexesOf = async (tx: Sql, { schema, tables }: Fresh): Promise<readonly string[]> => {
  const { rows } = await tx.query<{ table: string; definition: string }>(
    `select c.relname as table, pg_get_indexdef(i.indexrelid) as definition
       from pg_index i join pg_class c on c.oid = i.indrelid
      where c.relnamespace = current_schema()::regnamespace and c.relname = any($1)
        and not exists (select 1 from pg_constraint o
                         where o.conindid = i.indexrelid and o.contype in ('p', 'u'))
      order by c.relname, i.indexrelid`,
    [tables],
  )
  return rows.map(({ table, definition }) =>
    definition.replace(/ ON \S+ USING /, ` ON ${schema}.${table} USING `),
  )
}

/** Drops what rebuilds that are over left; `open` is the one that is not. */
export const dropLeftSchemas = async (
  sql: Sql,
  open: number | null,
): Promise<readonly string[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `select nspname as name from pg_namespace
      where nspname ~ '^rebuild_[0-9]+(_former)?$' and nspname is distinct from $1 order by 1`,
    [open === null ? null : schemaOf(open)],
  )
  for (const { name } of rows) await sql.query(`drop schema ${name} cascade`)
  return rows.map(({ name }) => name)
}
