// Delivery's SQL for chains and claims: who is first, who is due, what a partition has parked.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'

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

/**
 * An earlier message of the chain was parked after these: they wait behind it again. What we have in hand comes
 * back by itself; leases of others are of those who lost the partition, and would end with the row due. Index
 * parked_chain, all rows of a chain.
 */
export const demoteFollowers = async (
  tx: Sql,
  chains: readonly ChainKey[],
  { owner, at }: { readonly owner: string; readonly at: Date },
): Promise<void> => {
  if (chains.length === 0) return
  await tx.query(
    `update parked p set next_at = null, lease_owner = null, lease_until = null
       from unnest($1::text[], $2::int[], $3::int[], $4::bigint[])
            as t(topic, partition, destination_id, chain)
      cross join lateral (
        select f.id from parked f
         where f.topic = t.topic and f.partition = t.partition
           and f.destination_id = t.destination_id and f.chain = t.chain
         order by f.log_offset offset 1) follower
      where p.id = follower.id and p.next_at is not null
        and (p.lease_owner is null or p.lease_owner <> $5 or p.lease_until <= $6)`,
    [...keysOf(chains), owner, at],
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
  readonly parkedAt: Date
  /** Sent again by this recovery. */
  readonly recoveryId: number | null
}

/** Where a lane has rows, how many of them to look at, and up to which offset they may get a first try. */
export type Place = Omit<ChainKey, 'chain'> & { readonly look: number; readonly until: number }

type Claim = {
  readonly lanes: readonly { readonly destinationId: number; readonly room: number }[]
  readonly places: readonly Place[]
  readonly owner: string
  readonly at: Date
  readonly until: Date
}

/**
 * Claims by share: of each lane the rows that are due longest, up to its room, wherever they are. A few
 * rows of index parked_due are read for each place; nothing waits for rows that somebody else has locked.
 */
export const claimDue = async (tx: Sql, claim: Claim): Promise<readonly ClaimedRow[]> => {
  const { rows } = await tx.query<ClaimedRow>(
    `with seen as (
       select c.id, row_number() over (partition by h.destination_id order by c.next_at, c.log_offset) as n,
         h.destination_id
         from unnest($3::text[], $4::int[], $5::int[], $6::int[], $10::bigint[])
              as h(topic, partition, destination_id, look, until)
        cross join lateral (
          select p.id, p.next_at, p.log_offset from parked p
           where p.topic = h.topic and p.partition = h.partition
             and p.destination_id = h.destination_id and p.next_at <= $7
             and (p.log_offset < h.until or p.first_try_at is not null)
           order by p.next_at limit h.look) c
     ), due as materialized (
       select p.id from seen s
         join unnest($1::int[], $2::int[]) as l(destination_id, room) using (destination_id)
        cross join lateral (
          select id from parked where id = s.id and next_at <= $7 for update skip locked) p
        where s.n <= l.room
     ), claimed as (
       update parked p set lease_owner = $8, lease_until = $9, next_at = $9
        where p.id = any (array(select id from due))
       returning p.*
     )
     select c.id, c.topic, c.partition, c.log_offset as offset, c.chain,
       c.destination_id as "destinationId", c.message_id as "messageId", c.type,
       (select b.bytes from parked_body b where b.body_id = c.body_id and b.created_at = c.body_at) as body,
       c.parked_at as "parkedAt", c.first_try_at as "firstTryAt", c.attempts, c.final_urls as "finalUrls",
       c.recovery_id as "recoveryId"
     from claimed c`,
    [
      claim.lanes.map(({ destinationId }) => destinationId),
      claim.lanes.map(({ room }) => room),
      claim.places.map(({ topic }) => topic),
      claim.places.map(({ partition }) => partition),
      claim.places.map(({ destinationId }) => destinationId),
      claim.places.map(({ look }) => look),
      claim.at,
      claim.owner,
      claim.until,
      claim.places.map(({ until }) => until),
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

export type ParkedChain = Pick<ChainKey, 'destinationId' | 'chain'> & { readonly parked: number }

type ChainPage = {
  /** The last chain of the page before; `null`: the first page. */
  readonly after: ParkedChain | null
  readonly limit: number
  readonly without: readonly number[]
}

/** Parked chains by the page: all at once, a store that is full would take memory and time. Index parked_chain. */
export const loadChains = async (
  sql: Sql,
  at: At,
  { after, limit, without }: ChainPage,
): Promise<readonly ParkedChain[]> => {
  const { rows } = await sql.query<ParkedChain>(
    `select destination_id as "destinationId", chain, count(*)::int as parked from parked
      where topic = $1 and partition = $2 and (destination_id, chain) > ($5, $6)
        and destination_id <> all($4::int[])
      group by destination_id, chain order by destination_id, chain limit $3`,
    [at.topic, at.partition, limit, without, after?.destinationId ?? 0, after?.chain ?? 0n],
  )
  return rows
}
