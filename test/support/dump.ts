// Everything that a database holds, table by table, as a dump says it; and where an id stands in it.
import type { Pool } from '../../src/postgres/sql.ts'

type Dump = ReadonlyMap<string, string>

/** The log keeps what it was given until its retention ends. */
const isOfLog = (name: string): boolean => /^log_(chunk(_\d+)?|lease|member|partition)$/.test(name)

/** As COPY writes rows; what is binary, a character for each byte. All schemas but the server's own. */
const dumpOf = async (pool: Pool): Promise<Dump> => {
  const { rows } = await pool.query<{ name: string; full: string }>(
    `select c.relname as name, format('%I.%I', n.nspname, c.relname) as full
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'm') and n.nspname !~ '^(pg_|information_schema$)' order by 2`,
  )
  const dump = new Map<string, string>()
  for (const { name, full } of rows) {
    if (isOfLog(name)) continue
    const chunks = await pool.connect((connection) =>
      connection.copyOut(`copy (select * from ${full}) to stdout`),
    )
    dump.set(full, readable(Buffer.concat(chunks).toString()))
  }
  return dump
}

/** A bytea stands there as `\\x` and hex; packed text is found once that is undone. */
const readable = (text: string): string =>
  text.replaceAll(/\\\\x([0-9a-f]+)/g, (_, hex: string) =>
    Buffer.from(hex, 'hex').toString('latin1'),
  )

/** The tables that hold any of the texts, the log's apart. */
export const dumpedTraces = async (
  pool: Pool,
  texts: readonly string[],
): Promise<readonly string[]> =>
  [...(await dumpOf(pool))].flatMap(([table, dumped]) =>
    texts.some((text) => dumped.includes(text)) ? [table] : [],
  )
