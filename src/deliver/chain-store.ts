// Delivery's SQL for chains and claims: who is first, who is due, what a partition has parked.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Partition } from './stage.ts'

export type ChainKey = {
  readonly topic: Topic
  readonly partition: number
  readonly destinationId: number
  readonly chain: bigint
}

const keysOf = (chains: readonly ChainKey[]) => [
  chains.map(({ topic }) => topic),
  chains.map(({ partition }) => partition),
  chains.map(({ destinationId }) => destinationId),
  chains.map(({ chain }) => chain),
]

/** Makes the first row of each chain due, where it was behind another. Index parked_chain, a row each. */
export const releaseHeads = async (
  tx: Sql,
  chains: readonly ChainKey[],
  at: Date,
): Promise<number> => {
  if (chains.length === 0) return 0
  const { rowCount } = await tx.query(
    `update parked p set next_at = $5
       from unnest($1::text[], $2::int[], $3::int[], $4::bigint[])
            as t(topic, partition, destination_id, chain)
      cross join lateral (
        select h.id, h.next_at from parked h
         where h.topic = t.topic and h.partition = t.partition
           and h.destination_id = t.destination_id and h.chain = t.chain
         order by h.log_offset limit 1) head
      where p.id = head.id and head.next_at is null`,
    [...keysOf(chains), at],
  )
  return rowCount ?? 0
}

/** An earlier message of the chain was parked after these: they wait behind it again. */
export const demoteFollowers = async (tx: Sql, chains: readonly ChainKey[]): Promise<void> => {
  if (chains.length === 0) return
  await tx.query(
    `update parked p set next_at = null
       from unnest($1::text[], $2::int[], $3::int[], $4::bigint[])
            as t(topic, partition, destination_id, chain)
      where p.topic = t.topic and p.partition = t.partition
        and p.destination_id = t.destination_id and p.chain = t.chain
        and p.next_at is not null and p.lease_owner is null
        and exists (select from parked e
              where e.topic = p.topic and e.partition = p.partition
                and e.destination_id = p.destination_id and e.chain = p.chain
                and e.log_offset < p.log_offset)`,
    keysOf(chains),
  )
}

export type ClaimedRow = ChainKey & {
  readonly id: bigint
  readonly offset: bigint
  readonly messageId: string
  readonly type: string
  readonly body: Buffer | null
  readonly firstTryAt: Date | null
  readonly attempts: number
  readonly finalUrls: readonly string[]
}

type Claim = {
  readonly rooms: readonly { readonly destinationId: number; readonly room: number }[]
  readonly partitions: readonly Partition[]
  readonly owner: string
  readonly at: Date
  readonly until: Date
}

/** Claims by share: up to `room` due rows of each destination. Index parked_due. */
export const claimDue = async (tx: Sql, claim: Claim): Promise<readonly ClaimedRow[]> => {
  const { rows } = await tx.query<ClaimedRow>(
    `with due as (
       select p.id from unnest($1::int[], $2::int[]) as l(destination_id, room)
       cross join lateral (
         select c.id from parked c
          where c.destination_id = l.destination_id and c.next_at <= $3
            and (c.topic, c.partition) in (select * from unnest($4::text[], $5::int[]))
          order by c.next_at, c.log_offset limit l.room for update skip locked) p
     )
     update parked p set lease_owner = $6, lease_until = $7, next_at = $7
       from due where p.id = due.id
     returning p.id, p.topic, p.partition, p.log_offset as offset, p.chain,
       p.destination_id as "destinationId", p.message_id as "messageId", p.type, p.body,
       p.first_try_at as "firstTryAt", p.attempts, p.final_urls as "finalUrls"`,
    [
      claim.rooms.map(({ destinationId }) => destinationId),
      claim.rooms.map(({ room }) => room),
      claim.at,
      claim.partitions.map(({ topic }) => topic),
      claim.partitions.map(({ partition }) => partition),
      claim.owner,
      claim.until,
    ],
  )
  return rows
}

type At = { readonly topic: Topic; readonly partition: number }

/** What was parked or given up at or above the position: settled, though the position may not say so. */
export const loadSettled = async (sql: Sql, at: At, from: bigint) => {
  const { rows } = await sql.query<{ offset: bigint; destinationId: number }>(
    `select log_offset as offset, destination_id as "destinationId" from parked
      where topic = $1 and partition = $2 and log_offset >= $3
      union all
     select log_offset, destination_id from dead
      where topic = $1 and partition = $2 and log_offset >= $3`,
    [at.topic, at.partition, from],
  )
  return rows
}

/** Rows parked by destination. */
export const countParked = async (sql: Sql, at: At) => {
  const { rows } = await sql.query<{ destinationId: number; parked: number }>(
    `select destination_id as "destinationId", count(*)::int as parked from parked
      where topic = $1 and partition = $2 group by destination_id`,
    [at.topic, at.partition],
  )
  return rows
}

/** Parked chains, up to a limit; one more than the limit says that there are too many. */
export const loadChains = async (sql: Sql, at: At, limit: number) => {
  const { rows } = await sql.query<{ destinationId: number; chain: bigint; parked: number }>(
    `select destination_id as "destinationId", chain, count(*)::int as parked from parked
      where topic = $1 and partition = $2 group by destination_id, chain limit $3`,
    [at.topic, at.partition, limit],
  )
  return rows
}

type Cancellation = {
  readonly destinationIds: readonly number[]
  readonly partitions: readonly Partition[]
  readonly at: Date
  readonly limit: number
}

/** Gives up what is parked for destinations that are gone or switched off; leased rows end in their round. */
export const cancelParked = async (tx: Sql, cancellation: Cancellation) => {
  const { rows } = await tx.query<ChainKey>(
    `with gone as (
       delete from parked where id in (
         select id from parked
          where destination_id = any($1::int[])
            and (topic, partition) in (select * from unnest($2::text[], $3::int[]))
            and lease_owner is null
          limit $4 for update skip locked)
       returning *
     ), buried as (
       insert into dead (topic, partition, log_offset, destination_id, message_id, type, body, reason,
         status, attempts, first_try_at, dead_at)
       select topic, partition, log_offset, destination_id, message_id, type, body, 'cancelled',
         last_status, attempts, first_try_at, $5 from gone
       on conflict (topic, partition, log_offset, destination_id) do nothing
     )
     select topic, partition, destination_id as "destinationId", chain from gone`,
    [
      cancellation.destinationIds,
      cancellation.partitions.map(({ topic }) => topic),
      cancellation.partitions.map(({ partition }) => partition),
      cancellation.limit,
      cancellation.at,
    ],
  )
  return rows
}
