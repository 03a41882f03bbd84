// Recoveries as the admin API makes, shows and steers them; the deliver stage works them.
import type { Sql } from '../postgres/sql.ts'
import { findJob, loadJobs, type Page, type Steering } from './job-store.ts'

export const recoveryStates = ['running', 'paused', 'finished', 'cancelled'] as const
export type RecoveryState = (typeof recoveryStates)[number]

export type Recovery = {
  readonly id: number
  readonly destinationId: number
  readonly origin: 'operator' | 'heal'
  readonly actor: string
  readonly state: RecoveryState
  readonly reason: string | null
  readonly type: string | null
  readonly status: number | null
  readonly messageId: string | null
  readonly since: Date | null
  readonly until: Date | null
  readonly ratePerSecond: number
  /** Dead messages that matched when it was made, and how many of them went out again so far. */
  readonly matched: number
  readonly recovered: number
  /** Of those: still on their way, dead again, delivered. */
  readonly waiting: number
  readonly diedAgain: number
  readonly delivered: number
  readonly createdAt: Date
  readonly endedAt: Date | null
}

export type DeadFilter = {
  readonly destinationId: number
  readonly reason: string | null
  readonly type: string | null
  readonly status: number | null
  readonly messageId: string | null
  readonly since: Date | null
  readonly until: Date | null
}

const valuesOf = (filter: DeadFilter) => [
  filter.destinationId,
  filter.reason,
  filter.type,
  filter.status,
  filter.messageId,
  filter.since,
  filter.until,
]

/** What a recovery with this filter would send again. Index dead_open. */
export const countMatching = async (sql: Sql, filter: DeadFilter, at: Date): Promise<number> => {
  const { rows } = await sql.query<{ amount: number }>(
    `select count(*)::float8 as amount from dead
      where destination_id = $1 and replayed_at is null and dead_at <= $8
        and ($2::text is null or reason = $2) and ($3::text is null or type = $3)
        and ($4::int is null or status = $4) and ($5::text is null or message_id = $5)
        and ($6::timestamptz is null or dead_at >= $6) and ($7::timestamptz is null or dead_at < $7)`,
    [...valuesOf(filter), at],
  )
  return rows[0]?.amount ?? 0
}

/** It may begin with what its rate gives in this time. */
const creditBeforeMs = 1_000

type Wish = {
  readonly filter: DeadFilter
  readonly actor: string
  readonly ratePerSecond: number
  readonly matched: number
  readonly at: Date
}

export const insertRecovery = async (sql: Sql, wish: Wish): Promise<number> => {
  const { rows } = await sql.query<{ id: number }>(
    `insert into recovery (destination_id, reason, type, status, message_id, since, until, origin, actor,
       state, rate_per_second, matched, credited_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, 'operator', $8, 'running', $9, $10, $11, $12) returning id`,
    [
      ...valuesOf(wish.filter),
      wish.actor,
      wish.ratePerSecond,
      wish.matched,
      new Date(wish.at.getTime() - creditBeforeMs),
      wish.at,
    ],
  )
  return (rows[0] as { id: number }).id
}

/** Of all destinations. Index recovery_working. */
export const countRunning = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ amount: number }>(
    `select count(*)::int as amount from recovery where state in ('running', 'paused')`,
  )
  return rows[0]?.amount ?? 0
}

/** What is on its way is counted, by the indexes parked_recovery and dead_recovery: for people, not for loops. */
const select = `select r.id, r.destination_id as "destinationId", r.origin, r.actor, r.state, r.reason, r.type,
    r.status, r.message_id as "messageId", r.since, r.until, r.rate_per_second as "ratePerSecond",
    r.matched::float8 as matched, r.recovered::float8 as recovered, p.waiting, d.died as "diedAgain",
    (r.recovered - p.waiting - d.died)::float8 as delivered,
    r.created_at as "createdAt", r.ended_at as "endedAt"
  from recovery r
  cross join lateral (select count(*)::float8 as waiting from parked where recovery_id = r.id) p
  cross join lateral (select count(*)::float8 + r.passed_on as died from dead
                       where recovery_id = r.id and replayed_at is null) d`

export const findRecovery = (sql: Sql, id: number): Promise<Recovery | null> =>
  findJob<Recovery>(sql, select, id)

export const loadRecoveries = (sql: Sql, page: Page): Promise<readonly Recovery[]> =>
  loadJobs<Recovery>(sql, select, page)

/** `false`: it was in none of the states it may be steered from. */
export const steerRecovery = async (
  sql: Sql,
  steering: Steering<RecoveryState>,
): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update recovery set state = $3, credited_at = greatest(credited_at, $5),
       ended_at = case when $3 = 'cancelled' then $4::timestamptz end
      where id = $1 and state = any($2::text[])`,
    [
      steering.id,
      steering.from,
      steering.to,
      steering.at,
      new Date(steering.at.getTime() - creditBeforeMs),
    ],
  )
  return (rowCount ?? 0) > 0
}
