// Alerts' SQL: what operators were told and when, so that several processes tell it once, and what is on its way.
import type { Sql } from '../postgres/sql.ts'

export type About = Readonly<Record<string, string | number | null>>

export type AlertRow = {
  /** What is told, of whom. */
  readonly key: string
  readonly id: string
  readonly type: string
  readonly about: About
  readonly at: Date
  readonly nextAt: Date
}

type Writing = {
  /** Of distinct keys. */
  readonly rows: readonly AlertRow[]
  /** Told since then is told. */
  readonly againAfterMs: number
  /** No more than this wait. */
  readonly max: number
}

/** `told`: by anybody, at `toldAt` where that is known. `full`: too many wait. */
export type Written = {
  readonly key: string
  readonly type: string
  readonly outcome: 'new' | 'told' | 'full'
  readonly toldAt: Date | null
}

/**
 * The claim of the hour and the row that is to be sent, in one statement. What was told is only read: nobody waits for
 * others' transactions because of what is known already.
 */
export const writeAlerts = async (
  sql: Sql,
  { rows, againAfterMs, max }: Writing,
): Promise<readonly Written[]> => {
  const { rows: written } = await sql.query<Written>(
    `with news as (
       select * from unnest($1::text[], $2::uuid[], $3::text[], $4::json[], $5::timestamptz[],
         $6::timestamptz[], $7::timestamptz[]) as n(key, id, type, about, at, next_at, before)
     ), told as (
       select key, a.told_at from news n join operator_alert a using (key) where a.told_at >= n.before
       union
       select key, o.at from news n join alert_outbox o using (key)
     ), open as (
       select * from news where key not in (select key from told)
        order by at limit greatest(0, $8 - (select count(*) from alert_outbox))
     ), claimed as (
       insert into operator_alert as a (key, told_at) select key, at from open order by key
       on conflict (key) do update set told_at = excluded.told_at
        where a.told_at < excluded.told_at - make_interval(secs => $9)
       returning key
     ), written as (
       insert into alert_outbox (key, id, type, about, at, next_at)
       select key, id, type, about, at, next_at from open join claimed using (key)
       on conflict (key) do nothing
       returning key
     )
     select n.key, n.type,
            case when n.key in (select key from written) then n.at
                 else (select max(told_at) from told t where t.key = n.key) end as "toldAt",
            case when n.key in (select key from written) then 'new'
                 when n.key in (select key from told union all select key from open) then 'told'
                 else 'full' end as outcome
       from news n`,
    [
      rows.map(({ key }) => key),
      rows.map(({ id }) => id),
      rows.map(({ type }) => type),
      rows.map(({ about }) => JSON.stringify(about)),
      rows.map(({ at }) => at),
      rows.map(({ nextAt }) => nextAt),
      rows.map(({ at }) => new Date(at.getTime() - againAfterMs)),
      max,
      againAfterMs / 1_000,
    ],
  )
  return written
}

export type Taken = {
  readonly key: string
  readonly id: string
  readonly type: string
  readonly about: About
  readonly count: bigint | null
  readonly at: Date
  readonly tries: number
}

/** The one that is due first; until `until` it is left to who took it. */
export const takeAlert = async (
  sql: Sql,
  { at, until }: { readonly at: Date; readonly until: Date },
): Promise<Taken | null> => {
  const { rows } = await sql.query<Taken>(
    `update alert_outbox set tries = tries + 1, next_at = $2
      where key = (select key from alert_outbox where next_at <= $1
                    order by next_at, at limit 1 for update skip locked)
     returning key, id, type, about, count, at, tries`,
    [at, until],
  )
  return rows[0] ?? null
}

/** How many died of it since it was first found; kept, so that every try says the same. */
export const countDead = async (sql: Sql, { key, id }: Taken): Promise<bigint> => {
  const { rows } = await sql.query<{ count: bigint }>(
    `update alert_outbox o set count = coalesce(o.count, (
        select count(*) from dead d where d.destination_id = (o.about ->> 'destinationId')::int
           and d.reason = o.about ->> 'reason' and d.dead_at >= o.at))
      where o.key = $1 and o.id = $2 returning o.count`,
    [key, id],
  )
  return rows[0]?.count ?? 1n
}

type Which = { readonly key: string; readonly id: string }

export const postponeAlert = async (sql: Sql, { key, id }: Which, nextAt: Date): Promise<void> => {
  await sql.query('update alert_outbox set next_at = $3 where key = $1 and id = $2', [
    key,
    id,
    nextAt,
  ])
}

/** It was taken, or is given up; what was told long ago is forgotten. */
export const endAlert = async (sql: Sql, { key, id }: Which, before: Date): Promise<void> => {
  await sql.query(
    `with ended as (delete from alert_outbox where key = $1 and id = $2)
     delete from operator_alert a where a.told_at < $3 and a.key <> $1`,
    [key, id, before],
  )
}
