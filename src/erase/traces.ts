// Looks through everything in Postgres for an id, as a word of its own: every row of every table; log tables apart.
import type { Sql } from '../postgres/sql.ts'
import { idForms } from './id-forms.ts'

export type Trace = { readonly table: string; readonly rows: number }

/** The log keeps what it was given until its retention ends; what is configured is not a user's. */
const apart = /^(log_|position$)/

/** Digests and what is sealed: any few bytes stand somewhere in them. */
const digests = [
  ...['hash', 'secret_key_hash', 'idempotency_key', 'idempotency_body', 'sha256'],
  ...['entries', 'bloom', 'sealed'],
]

type Columns = {
  readonly name: string
  readonly texts: readonly string[]
  readonly bytes: readonly string[]
}

/** A scan of the whole database. */
export const findTraces = async (sql: Sql, id: string): Promise<readonly Trace[]> => {
  const parts = [...new Set(formsOf(id))]
  const traces: Trace[] = []
  for (const { name, texts, bytes } of await loadColumns(sql)) {
    if (apart.test(name)) continue
    const isThere = [
      ...texts.map(
        (column) => `(${has(`t."${column}"::text`, '$1')} and t."${column}"::text ~ $2)`,
      ),
      ...bytes.map((column) => {
        const text = `encode(t."${column}", 'escape')`
        return `(${has(text, '$3')} and ${text} ~ $4)`
      }),
    ]
    if (isThere.length === 0) continue
    const { rows } = await sql.query<{ count: number }>(
      `select count(*)::int as count
         from (select $1::text[], $2::text, $3::text[], $4::text) as given, "${name}" t
        where ${isThere.join(' or ')}`,
      [parts, wordOf(parts), parts.map(escaped), packedWordOf(id, parts)],
    )
    const count = rows[0]?.count ?? 0
    if (count > 0) traces.push({ table: name, rows: count })
  }
  return traces
}

/** Rules out most rows at a small part of the cost. */
const has = (text: string, forms: string): string =>
  `exists (select from unnest(${forms}::text[]) as f(form) where position(f.form in ${text}) > 0)`

/** Numbers and instants hold no ids. */
const loadColumns = async (sql: Sql): Promise<readonly Columns[]> => {
  const { rows } = await sql.query<Columns>(
    `select c.relname as name,
            array_agg(a.attname::text) filter (where y.oid <> 'bytea'::regtype) as texts,
            array_agg(a.attname::text) filter (where y.oid = 'bytea'::regtype and a.attname <> all($1)) as bytes
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       join pg_type y on y.oid = coalesce((select e.oid from pg_type e where e.typarray = a.atttypid), a.atttypid)
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
        and not c.relispartition and (y.typcategory in ('S', 'U'))
      group by 1 order by 1`,
    [digests],
  )
  return rows.map(({ name, texts, bytes }) => ({ name, texts: texts ?? [], bytes: bytes ?? [] }))
}

/** In an array of texts quotes and backslashes are escaped once more. */
const formsOf = (id: string): readonly string[] =>
  idForms(id).flatMap((form) => [form, form.replaceAll(/["\\]/g, '\\$&')])

/** What JSON escapes ends in a letter or digit, and so does a byte that Postgres tells in octal. */
const before = String.raw`(^|[^a-zA-Z0-9]|\\[bfnrt]|\\u[0-9a-fA-F]{4}|\\[0-7]{3})`
const after = '([^a-zA-Z0-9]|$)'

const wordOf = (forms: readonly string[]): string =>
  `${before}(${forms.map(literal).join('|')})${after}`

/** In packed bytes a text stands behind its length, and anything may follow. */
const packedWordOf = (id: string, parts: readonly string[]): string => {
  const bytes = Buffer.byteLength(id)
  const whole = literal(escaped(id))
  // Of two bytes and more: nothing but the id itself is so long.
  if (bytes >= 128) return whole
  const length = literal(escaped(String.fromCharCode(bytes)))
  return `${wordOf(parts.map(escaped))}|${length}${whole}`
}

/** As Postgres writes bytes in its format "escape". */
const escaped = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) => {
      if (byte === 0x5c) return '\\\\'
      if (byte > 0 && byte < 0x80) return String.fromCharCode(byte)
      return `\\${byte.toString(8).padStart(3, '0')}`
    })
    .join('')

const literal = (text: string): string =>
  text.replaceAll(/[\u0020-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007e]/g, '\\$&')
