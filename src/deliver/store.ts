// Delivery's SQL for parked rows: what is parked, settled, tried again. Every instant is a parameter.
import { placeOf, type Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Entry, total } from './ledger-store.ts'
import type { Partition } from './stage.ts'

/**
 * Which partitions are still ours; their epochs hold until the transaction ends. One that was lost and gained
 * again is another one: what was left to do for the first is not done for the second.
 */
export const holdPartitions = async (
  tx: Sql,
  partitions: readonly Partition[],
): Promise<ReadonlySet<Partition>> => {
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
  const places = new Set(rows.map(placeOf))
  return new Set(partitions.filter((partition) => places.has(placeOf(partition))))
}

export type Source = {
  readonly topic: Topic
  readonly partition: number
  readonly offset: number
  readonly destinationId: number
  readonly chain: bigint
  readonly messageId: string
  readonly type: string
  readonly body: Buffer | null
}

export type ParkRow = Source & {
  readonly reason: string
  readonly nextAt: Date | null
  readonly firstTryAt: Date | null
  readonly attempts: number
  readonly finalUrls: readonly string[]
  readonly lastReason: string | null
  readonly lastStatus: number | null
}

/**
 * Parking twice is parking once, and counted once in the ledger. What shares its bytes in memory shares one
 * stored body.
 */
export const insertParked = async (tx: Sql, rows: readonly ParkRow[], at: Date): Promise<void> => {
  if (rows.length === 0) return
  const { ordinals, starts, lengths, bytes } = packBodies(rows)
  await tx.query(
    `with bodies as materialized (
       select n, nextval('parked_body_id') as body_id, substr($17::bytea, b.start, b.length) as bytes
         from unnest($18::int[], $19::int[]) with ordinality as b(start, length, n)
     ), stored as (
       insert into parked_body (body_id, created_at, bytes) select body_id, $16, bytes from bodies
     ), inserted as (
       insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type,
         reason, next_at, first_try_at, attempts, final_urls, last_reason, last_status, parked_at,
         body_id, body_at, body_bytes)
       select t.topic, t.partition, t.log_offset, t.destination_id, t.chain, t.message_id, t.type,
         t.reason, t.next_at, t.first_try_at, t.attempts,
         array(select jsonb_array_elements_text(t.final_urls)), t.last_reason, t.last_status, $16,
         b.body_id, case when b.body_id is not null then $16::timestamptz end,
         coalesce(length(b.bytes), 0)
       from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::bigint[], $6::text[], $7::text[],
         $8::text[], $9::timestamptz[], $10::timestamptz[], $11::int[], $12::jsonb[], $13::text[],
         $14::int[], $15::int[]) as t(topic, partition, log_offset, destination_id, chain, message_id,
         type, reason, next_at, first_try_at, attempts, final_urls, last_reason, last_status, body)
       left join bodies b on b.n = t.body
       on conflict (topic, partition, log_offset, destination_id) do nothing
       returning topic, partition, destination_id, body_bytes, reason
     )
     insert into delivery_ledger as l (topic, partition, destination_id, taken, recovered, body_bytes)
     select topic, partition, destination_id, count(*), count(*) filter (where reason = 'replay'),
       sum(body_bytes) from inserted group by topic, partition, destination_id
     on conflict (topic, partition, destination_id) do update set taken = l.taken + excluded.taken,
       recovered = l.recovered + excluded.recovered, body_bytes = l.body_bytes + excluded.body_bytes`,
    [
      ...columnsOf(rows),
      rows.map(({ reason }) => reason),
      rows.map(({ nextAt }) => nextAt),
      rows.map(({ firstTryAt }) => firstTryAt),
      rows.map(({ attempts }) => attempts),
      rows.map(({ finalUrls }) => JSON.stringify(finalUrls)),
      rows.map(({ lastReason }) => lastReason),
      rows.map(({ lastStatus }) => lastStatus),
      ordinals,
      at,
      bytes,
      starts,
      lengths,
    ],
  )
}

/** All bodies in one value, which costs a fraction of an array of them. Ordinals and starts count from 1. */
const packBodies = (rows: readonly Source[]) => {
  const bodies = new Map<Buffer, number>()
  const ordinals = rows.map(({ body }) => {
    if (body && !bodies.has(body)) bodies.set(body, bodies.size + 1)
    return body ? bodies.get(body) : null
  })
  const lengths = [...bodies.keys()].map(({ length }) => length)
  let start = 1
  const starts = lengths.map((length) => {
    start += length
    return start - length
  })
  return { ordinals, starts, lengths, bytes: Buffer.concat([...bodies.keys()]) }
}

export const columnsOf = (rows: readonly Source[]) => [
  rows.map(({ topic }) => topic),
  rows.map(({ partition }) => partition),
  rows.map(({ offset }) => offset),
  rows.map(({ destinationId }) => destinationId),
  rows.map(({ chain }) => chain),
  // Postgres text has no NUL.
  rows.map(({ messageId }) => messageId.replaceAll('\u0000', '\ufffd')),
  rows.map(({ type }) => type),
]

/** Only the owner of a lease that still runs may settle a row. */
export type Leased = { readonly owner: string; readonly at: Date }

export type Ended = { readonly ids: ReadonlySet<bigint>; readonly entries: readonly Entry[] }

export const nothingEnded: Ended = { ids: new Set(), entries: [] }

export type Gone = {
  readonly id: bigint
  readonly topic: Topic
  readonly partition: number
  readonly destinationId: number
  readonly bytes: number
}

export const deleteDelivered = async (
  tx: Sql,
  ids: readonly bigint[],
  leased: Leased,
): Promise<Ended> => {
  if (ids.length === 0) return nothingEnded
  const { rows } = await tx.query<Gone>(
    `delete from parked where id = any($1::bigint[]) and lease_owner = $2 and lease_until > $3
     returning id, topic, partition, destination_id as "destinationId", body_bytes as bytes`,
    [ids, leased.owner, leased.at],
  )
  return {
    ids: new Set(rows.map(({ id }) => id)),
    entries: total(rows.map((row) => ({ ...row, delivered: 1, bytes: -row.bytes }))),
  }
}

export type Retry = {
  readonly id: bigint
  readonly nextAt: Date
  readonly firstTryAt: Date
  readonly attempts: number
  readonly finalUrls: readonly string[]
  readonly reason: string
  readonly status: number | null
  /** To be kept from now on; `null`: it is kept already, or there is no room for it. */
  readonly body: Buffer | null
}

/** The body is stored with the first failure, so that every later try sends the same bytes. */
export const scheduleRetries = async (
  tx: Sql,
  retries: readonly Retry[],
  leased: Leased,
): Promise<readonly Entry[]> => {
  if (retries.length === 0) return []
  const { rows } = await tx.query<Entry>(
    `with r as materialized (
       select *, case when body is not null then nextval('parked_body_id') end as new_id
         from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::jsonb[],
           $6::text[], $7::int[], $8::bytea[])
           as r(id, next_at, first_try_at, attempts, final_urls, reason, status, body)
     ), moved as (
       update parked p set next_at = r.next_at, first_try_at = r.first_try_at, attempts = r.attempts,
         final_urls = array(select jsonb_array_elements_text(r.final_urls)), reason = 'temporary',
         last_reason = r.reason, last_status = r.status, lease_owner = null, lease_until = null,
         body_id = coalesce(p.body_id, r.new_id),
         body_at = case when p.body_id is null and r.new_id is not null then $10 else p.body_at end,
         body_bytes = case when p.body_id is null and r.new_id is not null then length(r.body)
                           else p.body_bytes end
       from r where p.id = r.id and p.lease_owner = $9 and p.lease_until > $10
       returning p.topic, p.partition, p.destination_id, p.body_id, r.new_id, r.body
     ), stored as (
       insert into parked_body (body_id, created_at, bytes)
       select body_id, $10, body from moved where body_id = new_id
       returning body_id, length(bytes) as bytes
     )
     select m.topic, m.partition, m.destination_id as "destinationId", sum(s.bytes)::int as bytes
       from moved m join stored s using (body_id) group by 1, 2, 3`,
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
  return rows
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
