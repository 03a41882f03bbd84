// Replays as the admin API makes, shows and steers them; the replay stage works them.
import type { CallType } from '../domain/message.ts'
import { type Sql, sqlState } from '../postgres/sql.ts'
import { findJob, loadJobs, type Page, type Steering } from './job-store.ts'

export const replayStates = ['running', 'paused', 'draining', 'finished', 'cancelled'] as const
export type ReplayState = (typeof replayStates)[number]

/** Notified when one is made or steered. */
const channel = 'millrace_replay'

type Filter = {
  readonly by: 'receivedAt' | 'timestamp'
  readonly since: Date
  readonly until: Date
  readonly sourceIds: readonly number[]
  readonly types: readonly CallType[] | null
  readonly events: readonly string[] | null
  readonly userIds: readonly string[] | null
  readonly anonymousIds: readonly string[] | null
  /** Why they are dead at the destination; `null`: whether they are or not. */
  readonly reasons: readonly string[] | null
}

export type Wish = Filter & {
  readonly workspaceId: number
  readonly destinationId: number
  readonly actor: string
  readonly ratePerSecond: number
  readonly at: Date
}

/** Each of them has a shard of the topic to itself. */
const slots = 64

/** Of an open one of the same destination, or of as many as there may be: the index that says so. */
export const insertReplay = async (
  sql: Sql,
  wish: Wish,
): Promise<number | 'replay_open' | 'replays_too_many'> => {
  for (;;) {
    try {
      const { rows } = await sql.query<{ id: number }>(
        `with made as (
           insert into replay (workspace_id, destination_id, actor, state, by, since, until, source_ids,
             types, events, user_ids, anonymous_ids, rate_per_second, created_at, reasons, slot)
           select $1, $2, $3, 'running', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, s.slot
             from (select min(slot) as slot from generate_series(0, $15 - 1) as slot
                    where slot not in (select slot from replay where not settled)) s
            where s.slot is not null returning id
         )
         select id, pg_notify('${channel}', id::text)::text from made`,
        [
          wish.workspaceId,
          wish.destinationId,
          wish.actor,
          wish.by,
          wish.since,
          wish.until,
          wish.sourceIds,
          wish.types,
          wish.events,
          wish.userIds,
          wish.anonymousIds,
          wish.ratePerSecond,
          wish.at,
          wish.reasons,
          slots,
        ],
      )
      return rows[0]?.id ?? 'replays_too_many'
    } catch (error) {
      if (sqlState(error) !== '23505') throw error
      const { constraint } = error as { readonly constraint?: string }
      if (constraint === 'replay_open_destination') return 'replay_open'
      // Somebody took the same slot: there may be another one.
    }
  }
}

export type Replay = Filter & {
  readonly id: number
  readonly workspaceId: number
  readonly destinationId: number
  readonly actor: string
  readonly state: ReplayState
  readonly isSettled: boolean
  readonly trouble: string | null
  readonly ratePerSecond: number
  /** Offsets of the log to be read, `null` until it has started; and those read so far. */
  readonly total: number | null
  readonly read: number
  readonly selected: number
  readonly sent: number
  readonly historical: number
  readonly filtered: number
  readonly unsendable: number
  readonly suppressed: number
  readonly duplicate: number
  readonly expired: number
  /** Of those sent. */
  readonly waiting: number
  readonly parked: number
  readonly givenUp: number
  readonly delivered: number
  readonly etaSeconds: number | null
  readonly createdAt: Date
  readonly endedAt: Date | null
}

const counts = [
  'read',
  'selected',
  'sent',
  'historical',
  'filtered',
  'unsendable',
  'suppressed',
  'duplicate',
  'expired',
] as const

/** The view has those that are open; of the others is known what became of them. */
const select = `select r.id, r.workspace_id as "workspaceId", r.destination_id as "destinationId", r.actor,
    r.state, r.settled as "isSettled", r.trouble, r.by, r.since, r.until, r.source_ids as "sourceIds",
    r.types, r.events, r.user_ids as "userIds", r.anonymous_ids as "anonymousIds", r.reasons,
    r.rate_per_second as "ratePerSecond", (r.seq_until - r.seq_from)::float8 as total,
    ${counts.map((name) => `r.${name}::float8 as ${name}`).join(', ')},
    w.waiting, w.parked, w.given_up as "givenUp",
    greatest(0, r.sent - w.waiting - w.parked - w.given_up)::float8 as delivered,
    case when r.state = 'running' and r.pace > 0
      then ceil((r.seq_until - r.seq_from - r.read) / r.pace)::float8 end as "etaSeconds",
    r.created_at as "createdAt", r.ended_at as "endedAt"
  from replay r
  left join replay_standing s on s.id = r.id
  cross join lateral (
    select coalesce(s.parked, 0)::float8 as parked, coalesce(r.given_up, s.given_up, 0)::float8 as given_up
  ) e
  cross join lateral (
    select e.*, greatest(0, least(coalesce(s.waiting, 0), r.sent - e.parked - e.given_up))::float8 as waiting) w`

export const findReplay = (sql: Sql, id: number): Promise<Replay | null> =>
  findJob<Replay>(sql, select, id)

export const loadReplays = (sql: Sql, page: Page): Promise<readonly Replay[]> =>
  loadJobs<Replay>(sql, select, page)

/** `false`: it was in none of the states it may be steered from. */
export const steerReplay = async (sql: Sql, steering: Steering<ReplayState>): Promise<boolean> => {
  const { rows } = await sql.query(
    `with steered as (
       update replay set state = $3, trouble = null,
         ended_at = case when $3 = 'cancelled' then $4::timestamptz end
        where id = $1 and state = any($2::text[]) and not settled returning id
     )
     select pg_notify('${channel}', id::text)::text from steered`,
    [steering.id, steering.from, steering.to, steering.at],
  )
  return rows.length > 0
}
