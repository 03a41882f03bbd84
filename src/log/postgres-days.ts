// The days of the Postgres log: a table for each, made when it begins, dropped when nobody needs it.
import { withFewStatistics } from '../postgres/append-only.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Topic } from './log.ts'

const dayMs = 86_400_000

/** 'DAYS' read as a number: one process at a time makes or drops days. */
const lockKey = '1145132371'

const dayOf = (at: Date): number => Math.floor(at.getTime() / dayMs)

const startOf = (day: number): string => new Date(day * dayMs).toISOString()

/** log_chunk_20261121 */
const tableOf = (day: number): string =>
  `log_chunk_${startOf(day).slice(0, 10).replaceAll('-', '')}`

/**
 * Makes the tables of the instant's day and the next, and of the newest chunk's (an appender whose
 * clock is behind stores there). Attached, not created in place: readers and appends go on meanwhile.
 */
export const ensureDays = async (sql: Sql, at: Date): Promise<void> => {
  const { rows } = await sql.query<{ newest: Date }>(
    'select max(appended_at) as newest from log_partition',
  )
  const newest = dayOf(rows[0]?.newest ?? at)
  for (const day of new Set([dayOf(at), dayOf(at) + 1, Math.max(dayOf(at), newest)]))
    await sql.query(`do $$ begin
      perform pg_advisory_xact_lock(${lockKey});
      if to_regclass('${tableOf(day)}') is null then
        create table ${tableOf(day)} (like log_chunk including all);
        ${withFewStatistics(tableOf(day))}
        alter table log_chunk attach partition ${tableOf(day)}
          for values from ('${startOf(day)}') to ('${startOf(day + 1)}');
      end if;
    end $$`)
}

/** The days that have a table, oldest first. */
export const listDays = async (sql: Sql): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'log_chunk'::regclass order by 1`,
  )
  return rows.map(({ name }) => {
    const [, year, month, date] = /(\d{4})(\d\d)(\d\d)$/.exec(name) ?? []
    return Date.UTC(Number(year), Number(month) - 1, Number(date)) / dayMs
  })
}

/** Who still has to read something of a day, and where. */
export type Need = {
  readonly reader: string
  readonly topic: string
  readonly partition: number
  readonly next: bigint
  readonly end: bigint
}

/** An archive tells of itself four times a minute. */
const toldMs = 3_600_000

type Looking = { readonly day: number; readonly at: Date; readonly archived: readonly Topic[] }

/**
 * The readers whose place in a partition is below the day's end there: groups by what they committed,
 * readers with positions by the larger of the two. One that never committed stands at the start.
 * The archive counts where it is configured, and where a process has told of it of late: one that was
 * given up must not keep the log for ever.
 */
export const needsOf = async (
  sql: Sql,
  { day, at, archived }: Looking,
): Promise<readonly Need[]> => {
  const { rows } = await sql.query<Need>(
    `with ends as (
       select topic, partition, max(next_offset) as "end" from ${tableOf(day)} group by 1, 2
     ), told as (
       select topic from archive_partition where seen_at >= $2
        union select unnest($1::text[])
     ), places as (
       select group_name as reader, topic, partition, coalesce(committed, 0) as next from log_lease
       union all
       select reader, topic, partition, next from position
     )
     select p.reader, p.topic, p.partition, max(p.next) as next, e."end"
       from places p join ends e using (topic, partition)
      where p.reader <> 'archive' or p.topic in (select topic from told)
      group by p.reader, p.topic, p.partition, e."end" having max(p.next) < e."end"
      order by 1, 2, 3`,
    [archived, new Date(at.getTime() - toldMs)],
  )
  return rows
}

/** Drops the day and moves the log's start past it. Must run in a transaction. */
export const dropDay = async (tx: Sql, day: number): Promise<void> => {
  // A reader's long transaction must not make every later one queue behind this.
  await tx.query(`set local lock_timeout = '2s'`)
  await tx.query(`select pg_advisory_xact_lock(${lockKey})`)
  // An append locks the table before the counters, so this must too: the other way round is a deadlock.
  await tx.query('lock table log_chunk in access exclusive mode')
  await tx.query(
    `with ends as (
       select topic, partition, max(next_offset) as "end" from ${tableOf(day)} group by 1, 2
     ), locked as materialized (
       select p.topic, p.partition, e."end" from log_partition p join ends e using (topic, partition)
        order by p.topic, p.partition for update of p
     )
     update log_partition p set start_offset = greatest(p.start_offset, l."end")
       from locked l where (p.topic, p.partition) = (l.topic, l.partition)`,
  )
  await tx.query(`drop table ${tableOf(day)}`)
}

/** The days wholly before the instant. */
export const isBefore = (day: number, at: Date): boolean => (day + 1) * dayMs <= at.getTime()

export const nameOf = (day: number): string => startOf(day).slice(0, 10)
