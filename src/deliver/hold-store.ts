// Delivery's SQL for rows that wait because no URL of their destination may be asked.
import { placeOf } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ChainKey } from './chain-store.ts'
import type { Partition } from './stage.ts'

export type Holding = {
  readonly id: bigint
  readonly nextAt: Date
  /** `null`: as it was. */
  readonly reason: 'breaker_open' | null
}

type Leased = { readonly owner: string; readonly at: Date }

/** Claimed rows go back untried until then. */
export const holdRows = async (
  tx: Sql,
  holdings: readonly Holding[],
  leased: Leased,
): Promise<void> => {
  if (holdings.length === 0) return
  await tx.query(
    `update parked p set next_at = h.next_at, reason = coalesce(h.reason, p.reason),
       lease_owner = null, lease_until = null
     from unnest($1::bigint[], $2::timestamptz[], $3::text[]) as h(id, next_at, reason)
     where p.id = h.id and p.lease_owner = $4 and p.lease_until > $5`,
    [
      holdings.map(({ id }) => id),
      holdings.map(({ nextAt }) => nextAt),
      holdings.map(({ reason }) => reason),
      leased.owner,
      leased.at,
    ],
  )
}

type Search = {
  readonly rooms: readonly { readonly destinationId: number; readonly room: number }[]
  readonly partitions: readonly Pick<Partition, 'topic' | 'partition'>[]
  readonly at: Date
}

/**
 * Makes the oldest held rows of these destinations due, up to their rooms. Index parked_held, in its order:
 * nothing here may be a join, for which a planner that expects few rows would read and sort all that are held.
 */
export const releaseHeld = async (tx: Sql, { rooms, partitions, at }: Search) => {
  if (rooms.length === 0) return []
  const { rows } = await tx.query<{ destinationId: number; released: number }>(
    `with held as (
       select p.id from unnest($1::int[], $2::int[]) as l(destination_id, room)
       cross join lateral (
         select c.id from parked c
          where c.destination_id = l.destination_id and c.reason = 'breaker_open' and c.next_at > $3
            and c.lease_owner is null and c.topic || '/' || c.partition = any($4::text[])
          order by c.next_at limit l.room for update skip locked) p
     ), due as (
       update parked p set next_at = $3 from held where p.id = held.id returning p.destination_id
     )
     select destination_id as "destinationId", count(*)::int as released from due group by destination_id`,
    [
      rooms.map(({ destinationId }) => destinationId),
      rooms.map(({ room }) => room),
      at,
      partitions.map(placeOf),
    ],
  )
  return rows
}

/** Their order is suspended: every row goes by itself. Index parked_chain. */
export const freeChains = async (tx: Sql, chains: readonly ChainKey[], at: Date): Promise<void> => {
  if (chains.length === 0) return
  await tx.query(
    `update parked p set next_at = $5
       from unnest($1::text[], $2::int[], $3::int[], $4::bigint[])
            as t(topic, partition, destination_id, chain)
      where p.topic = t.topic and p.partition = t.partition
        and p.destination_id = t.destination_id and p.chain = t.chain
        and p.next_at is null and p.lease_owner is null`,
    [
      chains.map(({ topic }) => topic),
      chains.map(({ partition }) => partition),
      chains.map(({ destinationId }) => destinationId),
      chains.map(({ chain }) => chain),
      at,
    ],
  )
}
