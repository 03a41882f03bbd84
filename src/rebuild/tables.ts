// Which tables a rebuild makes anew, which it only works with, and which it leaves alone.
import type { Sql } from '../postgres/sql.ts'

/** Functions of the log without a user's key; every table with a column `user_key` is one, too. */
const ofTheLog = ['merge', 'identity_order', 'account_delta', 'account_count', 'account_turn']

/**
 * What the fold writes besides, thrown away in the end: positions of its own; digests of calls, which
 * stand in the live tables already; and what was noted for deletions when the calls were folded first.
 */
const scratch = [
  'position',
  'duplicate_chunk',
  'duplicate_segment',
  'duplicate_page',
  'deletion_profile',
  'deletion_identity',
]

export type Tables = {
  /** Folded anew, and in the place of the live ones in the end. */
  readonly swapped: readonly string[]
  readonly scratch: readonly string[]
}

/** Of the schema that the session works in. */
export const findTables = async (sql: Sql): Promise<Tables> => {
  const { rows } = await sql.query<{ name: string; isUsers: boolean }>(
    `select c.relname as name, bool_or(a.attname = 'user_key') as "isUsers"
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
      group by c.relname order by c.relname`,
  )
  const swapped = rows.flatMap(({ name, isUsers }) =>
    !scratch.includes(name) && (isUsers || ofTheLog.includes(name)) ? [name] : [],
  )
  const there = new Set(rows.map(({ name }) => name))
  return { swapped, scratch: scratch.filter((name) => there.has(name)) }
}
