// The rows of imports: one statement where a chunk is begun, one where it is done.
import type { JsonObject } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import type { LineRejection } from './record.ts'

export const importStates = ['running', 'finished', 'cancelled'] as const
export type ImportState = (typeof importStates)[number]

export const importFormats = ['ndjson', 'csv', 'tsv'] as const
export type ImportFormat = (typeof importFormats)[number]

/** One of the last two chunks: what its sender may not have heard, or not have written down. */
export type Recent = {
  readonly place: number
  readonly line: number
  readonly until: number
  readonly digest: string
  readonly rejected: readonly LineRejection[]
  /** Of the whole import up to its end; of those of earlier versions nobody counted it. */
  readonly untimed?: number
}

export type Import = {
  readonly id: number
  readonly sourceId: number
  readonly key: string
  readonly name: string
  readonly actor: string
  readonly format: ImportFormat
  readonly mapping: JsonObject | null
  readonly columns: readonly string[] | null
  readonly dryRun: boolean
  readonly state: ImportState
  readonly bytes: number | null
  readonly place: number
  readonly line: number
  readonly accepted: number
  readonly rejected: number
  readonly filtered: number
  readonly suppressed: number
  readonly untimed: number
  readonly recent: readonly Recent[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly endedAt: Date | null
}

const untimed = `coalesce((recent -> -1 ->> 'untimed')::float8, 0) as untimed`

const columns = `id, source_id as "sourceId", key, name, actor, format, mapping, columns, dry_run as "dryRun",
  state, bytes::float8 as bytes, place::float8 as place, line::float8 as line, accepted::float8 as accepted,
  rejected::float8 as rejected, filtered::float8 as filtered, suppressed::float8 as suppressed, ${untimed}, recent,
  created_at as "createdAt", updated_at as "updatedAt", ended_at as "endedAt"`

export const findImport = async (sql: Sql, id: number): Promise<Import | null> => {
  const { rows } = await sql.query<Import>(`select ${columns} from import where id = $1`, [id])
  return rows[0] ?? null
}

type Page = {
  readonly sourceId: number | null
  readonly state: ImportState | null
  readonly before: number | null
  readonly limit: number
}

/** Newest first. */
export const loadImports = async (sql: Sql, page: Page): Promise<readonly Import[]> => {
  const { rows } = await sql.query<Import>(
    `select ${columns} from import
      where ($1::int is null or source_id = $1) and ($2::text is null or state = $2)
        and ($3::int is null or id < $3)
      order by id desc limit $4`,
    [page.sourceId, page.state, page.before, page.limit],
  )
  return rows
}

export type NewImport = Pick<
  Import,
  'sourceId' | 'key' | 'name' | 'actor' | 'format' | 'mapping' | 'columns' | 'dryRun' | 'bytes'
> & { readonly identity: string; readonly at: Date }

/** The import of this identity, new or as far as it has come. */
export const insertImport = async (
  sql: Sql,
  made: NewImport,
): Promise<Import & { readonly isNew: boolean }> => {
  const { rows } = await sql.query<Import>(
    `insert into import (source_id, identity, key, name, actor, format, mapping, columns, dry_run, bytes,
       place, line, state, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 1, 'running', $11, $11)
     on conflict (source_id, identity) do nothing returning ${columns}`,
    [
      made.sourceId,
      made.identity,
      made.key,
      made.name,
      made.actor,
      made.format,
      made.mapping === null ? null : JSON.stringify(made.mapping),
      made.columns === null ? null : JSON.stringify(made.columns),
      made.dryRun,
      made.bytes,
      made.at,
    ],
  )
  if (rows[0]) return { ...rows[0], isNew: true }
  const found = await sql.query<Import>(
    `select ${columns} from import where source_id = $1 and identity = $2`,
    [made.sourceId, made.identity],
  )
  return { ...(found.rows[0] as Import), isNew: false }
}

/** By partition of `calls.import`, in text: offsets are beyond what JSON's numbers hold. */
export type Ends = readonly string[]

type Beginning = {
  readonly id: number
  readonly place: number
  readonly digest: string
  readonly at: Date
  readonly ends: Ends
}

export type Begun = {
  readonly attempt: bigint
  /** Of it some may have been appended already. */
  readonly isTakenOver: boolean
  readonly receivedAt: Date
  readonly ends: Ends
  /** Of all chunks before. */
  readonly untimed: number
}

/**
 * Notes what is about to be appended, or takes over what was noted and never done: then with the ends
 * and, for the same chunk, the receipt of that time. `null`: another chunk comes next, or none.
 */
export const beginChunk = async (sql: Sql, beginning: Beginning): Promise<Begun | null> => {
  const { rows } = await sql.query<Begun>(
    `update import set attempt = attempt + 1,
       pending_attempt = coalesce(pending_attempt, attempt + 1),
       pending_at = case when pending_digest = $3 then pending_at else $4 end,
       pending_digest = $3,
       pending_ends = coalesce(pending_ends, $5)
      where id = $1 and place = $2 and state = 'running'
     returning attempt, pending_attempt <> attempt as "isTakenOver", pending_at as "receivedAt", pending_ends as ends, ${untimed}`,
    [beginning.id, beginning.place, beginning.digest, beginning.at, JSON.stringify(beginning.ends)],
  )
  return rows[0] ?? null
}

type Ending = {
  readonly id: number
  readonly attempt: bigint
  readonly chunk: Recent
  readonly nextLine: number
  readonly isLast: boolean
  readonly accepted: number
  readonly filtered: number
  readonly suppressed: number
  readonly at: Date
}

/** `null`: somebody else took the chunk over. */
export const finishChunk = async (sql: Sql, ending: Ending): Promise<Import | null> => {
  const { chunk } = ending
  const { rows } = await sql.query<Import>(
    `update import set place = $3, line = $4,
       accepted = accepted + $5, rejected = rejected + $6, filtered = filtered + $7, suppressed = suppressed + $8,
       recent = case when json_array_length(recent) = 0 then json_build_array($9::json)
                     else json_build_array(recent -> -1, $9::json) end,
       pending_attempt = null, pending_at = null, pending_digest = null, pending_ends = null, updated_at = $10,
       state = case when $11 then 'finished' else state end,
       bytes = case when $11 then $3 else bytes end,
       ended_at = case when $11 then $10::timestamptz end
      where id = $1 and attempt = $2
     returning ${columns}`,
    [
      ending.id,
      ending.attempt,
      chunk.until,
      ending.nextLine,
      ending.accepted,
      chunk.rejected.length,
      ending.filtered,
      ending.suppressed,
      JSON.stringify(chunk),
      ending.at,
      ending.isLast,
    ],
  )
  return rows[0] ?? null
}

export const cancelImport = async (sql: Sql, id: number, at: Date): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update import set state = 'cancelled', ended_at = $2, updated_at = $2
      where id = $1 and state = 'running'`,
    [id, at],
  )
  return (rowCount ?? 0) > 0
}
