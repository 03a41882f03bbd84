// The attempt log's SQL for those who search it: newest first, by the page.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'

export type AttemptFilter = {
  readonly destinationId: number | null
  readonly url: string | null
  readonly outcome: 'delivered' | 'temporary' | 'final' | null
  readonly reason: string | null
  readonly status: number | null
  readonly messageId: string | null
  /** The chains of a visitor, as `chainOfKey` makes them from keys of the log. */
  readonly chains: readonly bigint[] | null
  readonly recoveryId: number | null
  readonly isOrderSuspended: boolean | null
  /** From, and up to but not at. Without a destination or a message they should be close: days are read through. */
  readonly since: Date
  readonly until: Date
}

/** The last row of the page before; `null`: the first page. */
export type AttemptCursor = { readonly startedAt: Date; readonly id: bigint }

export type FoundAttempt = {
  readonly id: bigint
  readonly startedAt: Date
  readonly topic: Topic
  readonly partition: number
  readonly offset: bigint
  readonly destinationId: number
  readonly messageId: string
  readonly attempt: number
  readonly url: string
  readonly durationMs: number
  readonly outcome: 'delivered' | 'temporary' | 'final'
  readonly reason: string | null
  readonly status: number | null
  readonly dnsMs: number | null
  readonly connectMs: number | null
  readonly tlsMs: number | null
  readonly firstByteMs: number | null
  readonly reused: boolean | null
  readonly isOrderSuspended: boolean
  readonly recoveryId: number | null
  readonly responseHead: string | null
}

type Page = { readonly after: AttemptCursor | null; readonly limit: number }

/** Days outside the range are not touched; within one an index finds a destination's or a message's rows. */
export const searchAttempts = async (
  sql: Sql,
  filter: AttemptFilter,
  { after, limit }: Page,
): Promise<readonly FoundAttempt[]> => {
  const { conditions, values } = conditionsOf(filter)
  if (after)
    conditions.push(`(started_at, id) < (${values.put(after.startedAt)}, ${values.put(after.id)})`)
  const { rows } = await sql.query<FoundAttempt>(
    `select id, started_at as "startedAt", topic, partition, log_offset as offset,
            destination_id as "destinationId", message_id as "messageId", attempt, url,
            duration_ms as "durationMs", outcome, reason, status, dns_ms as "dnsMs",
            connect_ms as "connectMs", tls_ms as "tlsMs", first_byte_ms as "firstByteMs", reused,
            order_suspended as "isOrderSuspended", recovery_id as "recoveryId",
            response_head as "responseHead"
       from attempt where ${conditions.join(' and ')}
      order by started_at desc, id desc limit ${values.put(limit)}`,
    values.all,
  )
  return rows
}

const columns = {
  destinationId: 'destination_id',
  url: 'url',
  outcome: 'outcome',
  reason: 'reason',
  status: 'status',
  messageId: 'message_id',
  recoveryId: 'recovery_id',
  isOrderSuspended: 'order_suspended',
} as const

/** Only what is asked for: a condition that is always true would hide an index from the planner. */
const conditionsOf = (filter: AttemptFilter) => {
  const all: unknown[] = []
  const put = (value: unknown): string => `$${all.push(value)}`
  const conditions = [`started_at >= ${put(filter.since)}`, `started_at < ${put(filter.until)}`]
  for (const key of Object.keys(columns) as (keyof typeof columns)[])
    if (filter[key] !== null) conditions.push(`${columns[key]} = ${put(filter[key])}`)
  if (filter.chains !== null) conditions.push(`chain = any(${put(filter.chains)}::bigint[])`)
  return { conditions, values: { all, put } }
}
