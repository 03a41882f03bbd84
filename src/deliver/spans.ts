// Tables by the hour and by the day: made before they are needed, dropped whole. Bodies and attempts.
import { withFewStatistics } from '../postgres/append-only.ts'
import type { Pool, Sql } from '../postgres/sql.ts'

export type Span = { readonly table: 'parked_body' | 'attempt'; readonly ms: number }

export const bodySpan: Span = { table: 'parked_body', ms: 3_600_000 }
export const attemptSpan: Span = { table: 'attempt', ms: 86_400_000 }

/** Which span of time an instant lies in, counted since 1970. */
export const spanOf = ({ ms }: Span, at: number): number => Math.floor(at / ms)

const startOf = ({ ms }: Span, number: number): string => new Date(number * ms).toISOString()

/** parked_body_2026112109, attempt_20261121 */
const nameOf = (span: Span, number: number): string => {
  const digits = startOf(span, number).replaceAll(/\D/g, '')
  return `${span.table}_${digits.slice(0, span.ms < attemptSpan.ms ? 10 : 8)}`
}

/** Attached, not created in place: readers and writers of the others go on meanwhile. */
export const ensureSpans = async (
  sql: Sql,
  span: Span,
  numbers: readonly number[],
): Promise<void> => {
  for (const number of numbers) {
    const name = nameOf(span, number)
    await sql.query(`do $$ begin
      if to_regclass('${name}') is not null then return; end if;
      lock table ${span.table} in share update exclusive mode;
      if to_regclass('${name}') is not null then return; end if;
      create table ${name} (like ${span.table} including all)
        with (autovacuum_vacuum_insert_threshold = -1);
      ${withFewStatistics(name)}
      alter table ${span.table} attach partition ${name}
        for values from ('${startOf(span, number)}') to ('${startOf(span, number + 1)}');
      ${summarizing(name)}
    end $$`)
  }
}

/** Nothing vacuums a table that is only added to, which is what else would bring a BRIN index up to date. */
const summarizing = (name: string): string => `
      declare brin regclass;
      begin
        for brin in select i.indexrelid from pg_index i join pg_class c on c.oid = i.indexrelid
                      join pg_am a on a.oid = c.relam
                     where i.indrelid = '${name}'::regclass and a.amname = 'brin'
        loop execute format('alter index %s set (autosummarize = on)', brin); end loop;
      end;`

/** The spans that have a table, oldest first. */
export const listSpans = async (sql: Sql, span: Span): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = $1::regclass order by 1`,
    [span.table],
  )
  return rows.map(({ name }) => {
    const [, year, month, day, hour] = /(\d{4})(\d\d)(\d\d)(\d\d)?$/.exec(name) ?? []
    const at = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour ?? 0))
    return spanOf(span, at)
  })
}

type Drop = { readonly span: Span; readonly number: number }

/** Whether it was dropped: an hour of bodies that a parked row refers to stays, whatever its age. */
export const dropSpan = (pool: Pool, { span, number }: Drop): Promise<boolean> =>
  pool.transaction(async (tx) => {
    // A reader's long transaction must not make every later one queue behind this.
    await tx.query(`set local lock_timeout = '500ms'`)
    if (span === bodySpan && (await isReferred(tx, number))) return false
    await tx.query(`drop table if exists ${nameOf(span, number)}`)
    return true
  })

/** Index parked_body_at. */
const isReferred = async (tx: Sql, number: number): Promise<boolean> => {
  const { rows } = await tx.query(
    'select from parked where body_at >= $1 and body_at < $2 limit 1',
    [new Date(number * bodySpan.ms), new Date((number + 1) * bodySpan.ms)],
  )
  return rows.length > 0
}
