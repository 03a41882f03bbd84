// Dead messages and those parked, as the admin API searches and shows them.
import type { Sql } from '../postgres/sql.ts'
import type { Cursor } from './instant.ts'
import type { DeadFilter } from './recovery-store.ts'

export type Dead = {
  readonly id: number
  readonly destinationId: number
  readonly messageId: string
  readonly type: string
  readonly reason: string
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: Date | null
  readonly deadAt: Date
  /** When it went out again; null: not, or it died again. */
  readonly replayedAt: Date | null
  readonly recoveryId: number | null
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

const columns = `id::float8 as id, destination_id as "destinationId", message_id as "messageId", type, reason,
  status, attempts, first_try_at as "firstTryAt", dead_at as "deadAt", replayed_at as "replayedAt",
  recovery_id as "recoveryId", topic, partition, log_offset::float8 as offset`

export type DeadSearch = {
  readonly filter: Omit<DeadFilter, 'destinationId'> & { readonly destinationId: number | null }
  /** `null`: whether or not they went out again. */
  readonly isReplayed: boolean | null
  readonly after: Cursor | null
  readonly limit: number
}

/** Newest first. Only what is asked for becomes a condition, so that the planner finds its index. */
export const searchDead = async (sql: Sql, search: DeadSearch): Promise<readonly Dead[]> => {
  const { filter, isReplayed, after, limit } = search
  const values: unknown[] = []
  const put = (value: unknown) => `$${values.push(value)}`
  const asked = [
    ['destination_id =', filter.destinationId],
    ['reason =', filter.reason],
    ['type =', filter.type],
    ['status =', filter.status],
    ['message_id =', filter.messageId],
    ['dead_at >=', filter.since],
    ['dead_at <', filter.until],
  ] as const
  const conditions = asked.flatMap(([column, value]) =>
    value === null ? [] : [`${column} ${put(value)}`],
  )
  if (isReplayed !== null) conditions.push(`replayed_at is ${isReplayed ? 'not ' : ''}null`)
  if (after) conditions.push(`(dead_at, id) < (${put(after.at)}, ${put(after.id)})`)
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const { rows } = await sql.query<Dead>(
    `select ${columns} from dead ${where} order by dead_at desc, dead.id desc limit ${put(limit)}`,
    values,
  )
  return rows
}

export type DeadWithBody = Dead & { readonly body: Buffer | null }

export const findDead = async (sql: Sql, id: number): Promise<DeadWithBody | null> => {
  const { rows } = await sql.query<DeadWithBody>(
    `select ${columns}, body from dead where id = $1`,
    [id],
  )
  return rows[0] ?? null
}

export type Parked = {
  readonly messageId: string
  readonly type: string
  readonly reason: string
  readonly attempts: number
  readonly parkedAt: Date
  readonly firstTryAt: Date | null
  /** `null`: it waits behind another one of its visitor. */
  readonly nextTryAt: Date | null
  readonly lastReason: string | null
  readonly lastStatus: number | null
  readonly recoveryId: number | null
}

/** What is tried soonest comes first, then what waits behind it. Indexes parked_due and parked_chain. */
export const loadParked = async (
  sql: Sql,
  { destinationId, limit }: { readonly destinationId: number; readonly limit: number },
): Promise<readonly Parked[]> => {
  const { rows } = await sql.query<Parked>(
    `select r.message_id as "messageId", r.type, r.reason, r.attempts, r.parked_at as "parkedAt",
            r.first_try_at as "firstTryAt", r.next_at as "nextTryAt", r.last_reason as "lastReason",
            r.last_status as "lastStatus", r.recovery_id as "recoveryId"
       from position o
      cross join lateral (
        (select * from parked p where p.topic = o.topic and p.partition = o.partition
            and p.destination_id = $1 and p.next_at is not null order by p.next_at limit $2)
        union all
        (select * from parked p where p.topic = o.topic and p.partition = o.partition
            and p.destination_id = $1 and p.next_at is null limit $2)) r
      where o.reader = 'deliver'
      order by r.next_at nulls last, r.log_offset limit $2`,
    [destinationId, limit],
  )
  return rows
}
