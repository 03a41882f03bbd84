// Delivery's SQL for the dead: what was given up, with its reason and a body of its own.
import type { DeadReason } from '../domain/dead-reason.ts'
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ChainKey } from './chain-store.ts'
import { type Entry, total } from './ledger-store.ts'
import type { Stretch } from './replays.ts'
import {
  columnsOf,
  type Ended,
  type Gone,
  type Leased,
  nothingEnded,
  type Source,
} from './store.ts'

export type DeadRow = Source & {
  readonly reason: DeadReason
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: Date | null
}

export type DiedEntry = Entry & { readonly reason: string }

/** Straight from the log, without having been parked. */
export const insertDead = async (
  tx: Sql,
  rows: readonly DeadRow[],
  at: Date,
): Promise<readonly DiedEntry[]> => {
  if (rows.length === 0) return []
  const { rows: entries } = await tx.query<DiedEntry>(
    `with inserted as (
       insert into dead (topic, partition, log_offset, destination_id, chain, message_id, type, body,
         reason, status, attempts, first_try_at, dead_at)
       select *, $13 from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::bigint[], $6::text[],
         $7::text[], $8::bytea[], $9::text[], $10::int[], $11::int[], $12::timestamptz[])
       on conflict (topic, partition, log_offset, destination_id) do nothing
       returning topic, partition, destination_id, reason
     )
     select topic, partition, destination_id as "destinationId", reason, count(*)::int as taken,
       (count(*) filter (where reason <> 'cancelled'))::int as dead,
       (count(*) filter (where reason = 'cancelled'))::int as cancelled
     from inserted group by topic, partition, destination_id, reason`,
    [
      ...columnsOf(rows),
      rows.map(({ body }) => body),
      rows.map(({ reason }) => reason),
      rows.map(({ status }) => status),
      rows.map(({ attempts }) => attempts),
      rows.map(({ firstTryAt }) => firstTryAt),
      at,
    ],
  )
  return entries
}

/** Of a body: nothing is left of one of somebody who is not to be heard any more. */
type Keeping = 'kept' | 'forgotten'

/** What was sent again by a recovery has its row still: it is dead once more, in the chain of its first life. */
const dyingAgain = (
  body: Keeping,
) => `on conflict (topic, partition, log_offset, destination_id) do update
  set reason = excluded.reason, status = excluded.status, attempts = excluded.attempts,
    first_try_at = excluded.first_try_at, dead_at = excluded.dead_at, replayed_at = null,
    body = ${body === 'kept' ? 'coalesce(dead.body, excluded.body)' : 'null'}
  where dead.replayed_at is not null`

const parkedBody =
  '(select b.bytes from parked_body b where b.body_id = g.body_id and b.created_at = g.body_at)'

/**
 * From `gone` to dead, in the statement that deletes it. The hour that holds a parked body is dropped one
 * day, so the dead keep their own.
 */
const buryGone = (at: string, body: Keeping): string => `
  insert into dead (topic, partition, log_offset, destination_id, chain, message_id, type, body, reason,
    status, attempts, first_try_at, dead_at)
  select g.topic, g.partition, g.log_offset, g.destination_id, g.chain, g.message_id, g.type,
    ${body === 'kept' ? parkedBody : 'null'},
    g.why, g.died_of, g.tries, g.first_at, ${at}
    from gone g
  ${dyingAgain(body)}`

export type Burial = {
  readonly id: bigint
  readonly reason: DeadReason
  readonly isForgotten?: boolean
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: Date | null
}

/** From parked to dead. */
export const buryParked = async (
  tx: Sql,
  burials: readonly Burial[],
  leased: Leased,
): Promise<Ended> => {
  const forgotten = await buryBy(tx, burials.filter(isForgotten), { ...leased, body: 'forgotten' })
  const others = burials.filter((burial) => !isForgotten(burial))
  const kept = await buryBy(tx, others, { ...leased, body: 'kept' })
  return {
    ids: new Set([...forgotten.ids, ...kept.ids]),
    entries: [...forgotten.entries, ...kept.entries],
  }
}

const isForgotten = (burial: Burial): boolean => burial.isForgotten === true

/** In one statement. */
const buryBy = async (
  tx: Sql,
  burials: readonly Burial[],
  leased: Leased & { readonly body: Keeping },
): Promise<Ended> => {
  if (burials.length === 0) return nothingEnded
  const { rows } = await tx.query<Gone & { readonly reason: string }>(
    `with gone as (
       delete from parked p
        using unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::timestamptz[])
          as b(id, reason, status, attempts, first_try_at)
        where p.id = b.id and p.lease_owner = $6 and p.lease_until > $7
       returning p.*, b.reason as why, b.status as died_of, b.attempts as tries, b.first_try_at as first_at
     ), buried as (${buryGone('$7', leased.body)})
     select id, topic, partition, destination_id as "destinationId", body_bytes as bytes, why as reason
       from gone`,
    [
      burials.map(({ id }) => id),
      burials.map(({ reason }) => reason),
      burials.map(({ status }) => status),
      burials.map(({ attempts }) => attempts),
      burials.map(({ firstTryAt }) => firstTryAt),
      leased.owner,
      leased.at,
    ],
  )
  const entries = rows.map((row) => ({
    ...row,
    bytes: -row.bytes,
    [row.reason === 'cancelled' ? 'cancelled' : 'dead']: 1,
  }))
  return { ids: new Set(rows.map(({ id }) => id)), entries: total(entries) }
}

type Cancellation = {
  readonly stretches: readonly Stretch[]
  readonly at: Date
  readonly limit: number
}

export type Cancelled = { readonly keys: readonly ChainKey[]; readonly entries: readonly Entry[] }

export const nothingCancelled: Cancelled = { keys: [], entries: [] }

/** Gives up what is parked in these stretches; leased rows end in their round. */
export const cancelParked = async (tx: Sql, cancellation: Cancellation): Promise<Cancelled> => {
  const { rows } = await tx.query<ChainKey & { readonly topic: Topic; readonly bytes: number }>(
    `with gone as (
       delete from parked p where p.id in (
         select c.id
           from unnest($1::int[], $2::text[], $3::int[], $6::bigint[])
             as h(destination_id, topic, partition, below)
          cross join lateral (
            select id from parked c
             where c.topic = h.topic and c.partition = h.partition
               and c.destination_id = h.destination_id and c.log_offset < h.below
               and c.lease_owner is null
             limit $4 for update skip locked) c
          limit $4)
       returning p.*, 'cancelled' as why, p.last_status as died_of, p.attempts as tries,
         p.first_try_at as first_at
     ), buried as (${buryGone('$5', 'kept')})
     select topic, partition, destination_id as "destinationId", chain, body_bytes as bytes from gone`,
    [
      cancellation.stretches.map(({ destinationId }) => destinationId),
      cancellation.stretches.map(({ topic }) => topic),
      cancellation.stretches.map(({ partition }) => partition),
      cancellation.limit,
      cancellation.at,
      cancellation.stretches.map(({ below }) => below),
    ],
  )
  const entries = total(rows.map((row) => ({ ...row, bytes: -row.bytes, cancelled: 1 })))
  return { keys: rows, entries }
}

/** Forgets what has been dead for longer than it is kept, a slice at a time; whether there may be more. */
export const pruneDead = async (
  sql: Sql,
  { before, limit }: { readonly before: Date; readonly limit: number },
): Promise<boolean> => {
  const { rows } = await sql.query<{ amount: bigint }>(
    `with gone as (
       delete from dead where id in (
         select d.id from dead d where d.dead_at < $1 and (d.replayed_at is null or not exists (
             select from parked p where p.topic = d.topic and p.partition = d.partition
                and p.log_offset = d.log_offset and p.destination_id = d.destination_id))
          order by d.dead_at limit $2)
       returning recovery_id, replayed_at
     ), counted as (
       update recovery r set passed_on = r.passed_on + t.amount
         from (select recovery_id, count(*) as amount from gone
                where recovery_id is not null and replayed_at is null group by recovery_id) t
        where r.id = t.recovery_id
     )
     select count(*) as amount from gone`,
    [before, limit],
  )
  return Number(rows[0]?.amount ?? 0) >= limit
}
