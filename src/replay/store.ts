// The SQL of the replay stage: which replays are open, how far each has come, and what of it is on its way.

import type { CallType } from '../domain/message.ts'
import type { Selection } from '../domain/replay.ts'
import type { Span } from '../domain/replay-span.ts'
import type { Sql } from '../postgres/sql.ts'

/** What became of the offsets read. */
export const tallies = [
  'selected',
  'sent',
  'historical',
  'filtered',
  'unsendable',
  'suppressed',
  'duplicate',
  'expired',
] as const
export type Tally = Record<(typeof tallies)[number], number>

export type Replay = Tally & {
  readonly id: number
  readonly destinationId: number
  readonly state: 'running' | 'paused' | 'draining' | 'cancelled'
  readonly selection: Selection
  readonly ratePerSecond: number
  readonly createdAt: Date
  readonly slot: number
  /** `null` until it is planned, as the three after it. */
  readonly spans: readonly Span[] | null
  readonly seqFrom: number
  readonly tails: readonly bigint[]
  readonly read: number
  readonly pace: number | null
  readonly cut: boolean
  /** Why it paused by itself. */
  readonly trouble: string | null
}

type Row = Omit<Replay, 'selection' | 'tails'> & {
  readonly by: Selection['by']
  readonly since: Date
  readonly until: Date
  readonly sourceIds: readonly number[]
  readonly types: readonly CallType[] | null
  readonly events: readonly string[] | null
  readonly userIds: readonly string[] | null
  readonly anonymousIds: readonly string[] | null
  readonly reasons: readonly string[] | null
  readonly tails: readonly string[] | null
}

/** Those that are not settled. Index replay_open_destination, at most 64 rows. */
export const loadOpen = async (sql: Sql): Promise<readonly Replay[]> => {
  const { rows } = await sql.query<Row>(
    `select id, destination_id as "destinationId", state, by, since, until, source_ids as "sourceIds",
            types, events, user_ids as "userIds", anonymous_ids as "anonymousIds", reasons,
            rate_per_second as "ratePerSecond", created_at as "createdAt", slot, spans, seq_from::float8 as "seqFrom",
            tails::text[] as tails, read::float8 as read, pace, cut, trouble,
            ${tallies.map((tally) => `${tally}::float8 as ${tally}`).join(', ')}
       from replay where not settled order by id`,
  )
  return rows.map(({ by, since, until, tails, ...row }) => ({
    ...row,
    tails: (tails ?? []).map(BigInt),
    selection: {
      by,
      from: since.getTime(),
      until: until.getTime(),
      sourceIds: new Set(row.sourceIds),
      types: setOf(row.types),
      events: setOf(row.events),
      userIds: setOf(row.userIds),
      anonymousIds: setOf(row.anonymousIds),
      reasons: setOf(row.reasons),
    },
  }))
}

const setOf = <T>(all: readonly T[] | null): ReadonlySet<T> | null => all && new Set(all)

type Plan = {
  readonly id: number
  readonly spans: readonly Span[]
  readonly length: number
  readonly ends: readonly bigint[]
}

/** Numbers that no replay had before: whatever of an earlier one is still to land stands below them. */
export const savePlan = async (sql: Sql, { id, spans, length, ends }: Plan): Promise<void> => {
  await sql.query(
    `update replay r set spans = $2, seq_from = b.base, seq_until = b.base + $3,
            heads = $4::bigint[], tails = $4::bigint[],
            given_up_before = (select coalesce(sum(dead + cancelled), 0) from delivery_ledger l
               where l.topic = 'outbound.replay' and l.destination_id = r.destination_id)
       from (select coalesce(max(seq_until), 0) + 1 as base from replay) b
      where r.id = $1 and r.spans is null`,
    [id, JSON.stringify(spans), length, ends],
  )
}

export type Progress = Tally & {
  readonly id: number
  /** What was read when this process looked last: whoever moved it since has the replay. */
  readonly before: number
  readonly read: number
  readonly tails: readonly bigint[]
  readonly pace: number | null
  /** Everything has been read. */
  readonly isOver: boolean
}

/** The state it is in now; `null`: another process moved it. */
export const saveProgress = async (
  sql: Sql,
  progress: Progress,
): Promise<Replay['state'] | null> => {
  const { rows } = await sql.query<{ state: Replay['state'] }>(
    `update replay set read = $3, tails = $4::bigint[], pace = $5,
            state = case when $6 and state = 'running' then 'draining' else state end,
            ${tallies.map((tally, at) => `${tally} = $${at + 7}`).join(', ')}
      where id = $1 and read = $2 and not cut returning state`,
    [
      progress.id,
      progress.before,
      progress.read,
      progress.tails,
      progress.pace,
      progress.isOver,
      ...tallies.map((tally) => progress[tally]),
    ],
  )
  return rows[0]?.state ?? null
}

/** By itself: it cannot go on until somebody has looked. */
export const pauseTroubled = async (sql: Sql, id: number, trouble: string): Promise<void> => {
  await sql.query(
    `update replay set state = 'paused', trouble = $2 where id = $1 and state = 'running'`,
    [id, trouble],
  )
}

/** Its destination is gone. */
export const cancelReplay = async (sql: Sql, id: number, at: Date): Promise<void> => {
  await sql.query(
    `update replay set state = 'cancelled', ended_at = $2
      where id = $1 and state in ('running', 'paused', 'draining')`,
    [id, at],
  )
}

/** Cancelled, and this process appends nothing more of it: what is in the topic is given up. */
export const cutReplay = async (sql: Sql, id: number, ends: readonly bigint[]): Promise<void> => {
  await sql.query(
    `update replay set tails = $2::bigint[], heads = coalesce(heads, $2::bigint[]), cut = true
      where id = $1 and state = 'cancelled'`,
    [id, ends],
  )
}

export type Standing = {
  readonly id: number
  readonly waiting: number
  readonly parked: number
}

export const loadStandings = async (sql: Sql): Promise<readonly Standing[]> => {
  const { rows } = await sql.query<Standing>(
    'select id, waiting::float8 as waiting, parked::float8 as parked from replay_standing',
  )
  return rows
}

/** Once nothing of it is on its way: judged in the statement that says so. */
export const settleReplay = async (sql: Sql, id: number, at: Date): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update replay r set settled = true, given_up = s.given_up,
            state = case when r.state = 'draining' then 'finished' else r.state end,
            ended_at = coalesce(r.ended_at, $2)
       from replay_standing s
      where r.id = $1 and s.id = r.id and s.waiting = 0 and s.parked = 0
        and (r.state = 'draining' or r.cut)`,
    [id, at],
  )
  return (rowCount ?? 0) > 0
}
