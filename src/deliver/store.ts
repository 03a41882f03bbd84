// Delivery's SQL: parked rows, their leases, and the dead. Every instant is a parameter.
import { placeOf, type Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Partition } from './stage.ts'

/** Which partitions are still ours; their epochs hold until the transaction ends. */
export const holdPartitions = async (
  tx: Sql,
  partitions: readonly Partition[],
): Promise<ReadonlySet<string>> => {
  if (partitions.length === 0) return new Set()
  const { rows } = await tx.query<{ topic: Topic; partition: number }>(
    `select p.topic, p.partition
       from position p
       join unnest($1::text[], $2::int[], $3::bigint[]) as h(topic, partition, epoch)
         using (topic, partition, epoch)
      where p.reader = 'deliver'
      order by p.topic, p.partition for share of p`,
    [
      partitions.map(({ topic }) => topic),
      partitions.map(({ partition }) => partition),
      partitions.map(({ epoch }) => epoch),
    ],
  )
  return new Set(rows.map(placeOf))
}

type Source = {
  readonly topic: Topic
  readonly partition: number
  readonly offset: number
  readonly destinationId: number
  readonly messageId: string
  readonly type: string
  readonly body: Buffer | null
}

export type ParkRow = Source & {
  readonly chain: bigint
  readonly reason: string
  readonly nextAt: Date | null
  readonly firstTryAt: Date | null
  readonly attempts: number
  readonly finalUrls: readonly string[]
  readonly lastReason: string | null
  readonly lastStatus: number | null
}

/** Parking twice is parking once. */
export const insertParked = async (tx: Sql, rows: readonly ParkRow[], at: Date): Promise<void> => {
  if (rows.length === 0) return
  await tx.query(
    `insert into parked (topic, partition, log_offset, destination_id, message_id, type, body, chain,
       reason, next_at, first_try_at, attempts, final_urls, last_reason, last_status, parked_at)
     select t.topic, t.partition, t.log_offset, t.destination_id, t.message_id, t.type, t.body, t.chain,
       t.reason, t.next_at, t.first_try_at, t.attempts,
       array(select jsonb_array_elements_text(t.final_urls)), t.last_reason, t.last_status, $16
     from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::bytea[],
       $8::bigint[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::int[], $13::jsonb[],
       $14::text[], $15::int[]) as t(topic, partition, log_offset, destination_id, message_id, type,
       body, chain, reason, next_at, first_try_at, attempts, final_urls, last_reason, last_status)
     on conflict (topic, partition, log_offset, destination_id) do nothing`,
    [
      ...columnsOf(rows),
      rows.map(({ chain }) => chain),
      rows.map(({ reason }) => reason),
      rows.map(({ nextAt }) => nextAt),
      rows.map(({ firstTryAt }) => firstTryAt),
      rows.map(({ attempts }) => attempts),
      rows.map(({ finalUrls }) => JSON.stringify(finalUrls)),
      rows.map(({ lastReason }) => lastReason),
      rows.map(({ lastStatus }) => lastStatus),
      at,
    ],
  )
}

export type DeadRow = Source & {
  readonly reason: string
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: Date | null
}

/** Straight from the log, without having been parked. */
export const insertDead = async (tx: Sql, rows: readonly DeadRow[], at: Date): Promise<void> => {
  if (rows.length === 0) return
  await tx.query(
    `insert into dead (topic, partition, log_offset, destination_id, message_id, type, body, reason,
       status, attempts, first_try_at, dead_at)
     select *, $12 from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::text[], $6::text[],
       $7::bytea[], $8::text[], $9::int[], $10::int[], $11::timestamptz[])
     on conflict (topic, partition, log_offset, destination_id) do nothing`,
    [
      ...columnsOf(rows),
      rows.map(({ reason }) => reason),
      rows.map(({ status }) => status),
      rows.map(({ attempts }) => attempts),
      rows.map(({ firstTryAt }) => firstTryAt),
      at,
    ],
  )
}

const columnsOf = (rows: readonly Source[]) => [
  rows.map(({ topic }) => topic),
  rows.map(({ partition }) => partition),
  rows.map(({ offset }) => offset),
  rows.map(({ destinationId }) => destinationId),
  // Postgres text has no NUL.
  rows.map(({ messageId }) => messageId.replaceAll('\u0000', '\ufffd')),
  rows.map(({ type }) => type),
  rows.map(({ body }) => body),
]

/** Only the owner of a lease that still runs may settle a row. */
type Leased = { readonly owner: string; readonly at: Date }

type Ids = readonly { readonly id: bigint }[]

const none: ReadonlySet<bigint> = new Set()

const idsOf = ({ rows }: { readonly rows: Ids }): ReadonlySet<bigint> =>
  new Set(rows.map(({ id }) => id))

export const deleteDelivered = async (tx: Sql, ids: readonly bigint[], leased: Leased) => {
  if (ids.length === 0) return none
  return idsOf(
    await tx.query<{ id: bigint }>(
      `delete from parked where id = any($1::bigint[]) and lease_owner = $2 and lease_until > $3
       returning id`,
      [ids, leased.owner, leased.at],
    ),
  )
}

export type Burial = {
  readonly id: bigint
  readonly reason: string
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: Date | null
}

/** From parked to dead in one statement. */
export const buryParked = async (tx: Sql, burials: readonly Burial[], leased: Leased) => {
  if (burials.length === 0) return none
  return idsOf(
    await tx.query<{ id: bigint }>(
      `with gone as (
         delete from parked p
          using unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::timestamptz[])
            as b(id, reason, status, attempts, first_try_at)
          where p.id = b.id and p.lease_owner = $6 and p.lease_until > $7
         returning p.*, b.reason as why, b.status, b.attempts as tries, b.first_try_at as first_at
       ), buried as (
         insert into dead (topic, partition, log_offset, destination_id, message_id, type, body, reason,
           status, attempts, first_try_at, dead_at)
         select topic, partition, log_offset, destination_id, message_id, type, body, why,
           status, tries, first_at, $7 from gone
         on conflict (topic, partition, log_offset, destination_id) do nothing
       )
       select id from gone`,
      [
        burials.map(({ id }) => id),
        burials.map(({ reason }) => reason),
        burials.map(({ status }) => status),
        burials.map(({ attempts }) => attempts),
        burials.map(({ firstTryAt }) => firstTryAt),
        leased.owner,
        leased.at,
      ],
    ),
  )
}

export type Retry = {
  readonly id: bigint
  readonly nextAt: Date
  readonly firstTryAt: Date
  readonly attempts: number
  readonly finalUrls: readonly string[]
  readonly reason: string
  readonly status: number | null
  readonly body: Buffer
}

/** The body is stored with the first failure, so that every later try sends the same bytes. */
export const scheduleRetries = async (
  tx: Sql,
  retries: readonly Retry[],
  leased: Leased,
): Promise<void> => {
  if (retries.length === 0) return
  await tx.query(
    `update parked p set next_at = r.next_at, first_try_at = r.first_try_at, attempts = r.attempts,
       final_urls = array(select jsonb_array_elements_text(r.final_urls)), reason = 'temporary',
       last_reason = r.reason, last_status = r.status, body = coalesce(p.body, r.body),
       lease_owner = null, lease_until = null
     from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::jsonb[], $6::text[],
       $7::int[], $8::bytea[])
       as r(id, next_at, first_try_at, attempts, final_urls, reason, status, body)
     where p.id = r.id and p.lease_owner = $9 and p.lease_until > $10`,
    [
      retries.map(({ id }) => id),
      retries.map(({ nextAt }) => nextAt),
      retries.map(({ firstTryAt }) => firstTryAt),
      retries.map(({ attempts }) => attempts),
      retries.map(({ finalUrls }) => JSON.stringify(finalUrls)),
      retries.map(({ reason }) => reason),
      retries.map(({ status }) => status),
      retries.map(({ body }) => body),
      leased.owner,
      leased.at,
    ],
  )
}

/** Gives claimed rows back untried; whether they are due is decided with their chain. */
export const giveBack = async (tx: Sql, ids: readonly bigint[], owner: string): Promise<void> => {
  if (ids.length === 0) return
  await tx.query(
    `update parked set lease_owner = null, lease_until = null, next_at = null
      where id = any($1::bigint[]) and lease_owner = $2`,
    [ids, owner],
  )
}
