// Delivery's SQL for recoveries: which of them work, and dead rows on their way back to `parked`.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ChainKey } from './chain-store.ts'
import type { Partition } from './stage.ts'

export type Recovery = {
  readonly id: number
  readonly destinationId: number
  readonly state: 'running' | 'cancelled'
  readonly reason: string | null
  readonly type: string | null
  readonly status: number | null
  readonly messageId: string | null
  readonly since: Date | null
  readonly until: Date | null
  readonly ratePerSecond: number
  readonly creditedAt: Date
  readonly createdAt: Date
}

/** Whether there is anything to do, or of erased users to be given up. Two mostly empty tables. */
export const isRecovering = async (sql: Sql): Promise<boolean> => {
  const { rows } = await sql.query(
    `select from recovery where state = 'running' or (state = 'cancelled' and not withdrawn)
      union all select from parked_erasure limit 1`,
  )
  return rows.length > 0
}

/** Those nobody else is at, in turn: one process at a time spends a recovery's rate. */
export const lockRecoveries = async (
  tx: Sql,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly Recovery[]> => {
  const { rows } = await tx.query<Recovery>(
    `select id, destination_id as "destinationId", state, reason, type, status,
            message_id as "messageId", since, until, rate_per_second as "ratePerSecond",
            credited_at as "creditedAt", created_at as "createdAt"
       from recovery where state = 'running' or (state = 'cancelled' and not withdrawn)
      order by id <= $2, id limit $1 for update skip locked`,
    [limit, after],
  )
  return rows
}

export type DeadAgain = {
  readonly topic: Topic
  readonly partition: number
  readonly offset: bigint
  readonly messageId: string
  readonly type: string
  readonly body: Buffer | null
  readonly chain: bigint | null
}

/**
 * A row that dies again does so after the recovery was made, so that no recovery takes it twice; of two
 * recoveries the later one may.
 */
const matching = `c.destination_id = $3 and c.replayed_at is null and c.dead_at <= $4
  and c.recovery_id is distinct from $5
  and ($6::text is null or c.reason = $6) and ($7::text is null or c.type = $7)
  and ($8::int is null or c.status = $8) and ($9::text is null or c.message_id = $9)
  and ($10::timestamptz is null or c.dead_at >= $10) and ($11::timestamptz is null or c.dead_at < $11)`

const filterOf = (recovery: Recovery, partitions: readonly Partition[]) => [
  partitions.map(({ topic }) => topic),
  partitions.map(({ partition }) => partition),
  recovery.destinationId,
  recovery.createdAt,
  recovery.id,
  recovery.reason,
  recovery.type,
  recovery.status,
  recovery.messageId,
  recovery.since,
  recovery.until,
]

type Taking = {
  readonly recovery: Recovery
  readonly partitions: readonly Partition[]
  readonly at: Date
  readonly limit: number
}

/** Marks up to `limit` dead rows of these partitions as gone out again, the lowest offsets first. Index dead_open. */
export const takeDead = async (tx: Sql, taking: Taking): Promise<readonly DeadAgain[]> => {
  const { recovery, partitions, at, limit } = taking
  const { rows } = await tx.query<DeadAgain>(
    `with taken as (
       select d.id, d.recovery_id from unnest($1::text[], $2::int[]) as h(topic, partition)
       cross join lateral (
         select c.id, c.recovery_id from dead c
          where c.topic = h.topic and c.partition = h.partition and ${matching}
          order by c.log_offset limit $12 for update skip locked) d
       limit $12
     ), passed as (
       update recovery r set passed_on = r.passed_on + t.amount
         from (select recovery_id, count(*) as amount from taken group by recovery_id) t
        where r.id = t.recovery_id
     )
     update dead set replayed_at = $13, recovery_id = $5 from taken where dead.id = taken.id
     returning dead.topic, dead.partition, dead.log_offset as offset, dead.message_id as "messageId",
       dead.type, dead.body, dead.chain`,
    [...filterOf(recovery, partitions), limit, at],
  )
  return rows.toSorted((a, b) => Number(a.offset - b.offset))
}

/** Whether any process still has something to take. */
export const isExhausted = async (tx: Sql, recovery: Recovery): Promise<boolean> => {
  const { rows } = await tx.query(
    `select from dead c where $1::text[] is not null and $2::int[] is not null and ${matching} limit 1`,
    filterOf(recovery, []),
  )
  return rows.length === 0
}

type Progress = {
  readonly id: number
  readonly recovered: number
  readonly creditedAt: Date
  readonly endedAt: Date | null
}

export const saveProgress = async (tx: Sql, progress: Progress): Promise<void> => {
  await tx.query(
    `update recovery set recovered = recovered + $2, credited_at = $3, ended_at = $4,
       state = case when $4::timestamptz is null then state else 'finished' end where id = $1`,
    [progress.id, progress.recovered, progress.creditedAt, progress.endedAt],
  )
}

type Key = {
  readonly topic: Topic
  readonly partition: number
  readonly offset: number
  readonly destinationId: number
}

/** Which recovery the rows just parked belong to. */
export const markRecovered = async (tx: Sql, id: number, keys: readonly Key[]): Promise<void> => {
  if (keys.length === 0) return
  await tx.query(
    `update parked p set recovery_id = $1
       from unnest($2::text[], $3::int[], $4::bigint[], $5::int[])
         as k(topic, partition, log_offset, destination_id)
      where p.topic = k.topic and p.partition = k.partition and p.log_offset = k.log_offset
        and p.destination_id = k.destination_id`,
    [
      id,
      keys.map(({ topic }) => topic),
      keys.map(({ partition }) => partition),
      keys.map(({ offset }) => offset),
      keys.map(({ destinationId }) => destinationId),
    ],
  )
}

/** Its destination is gone. */
export const cancelRecovery = async (tx: Sql, id: number, at: Date): Promise<void> => {
  await tx.query(`update recovery set state = 'cancelled', ended_at = $2 where id = $1`, [id, at])
}

type Withdrawal = {
  readonly id: number
  readonly partitions: readonly Partition[]
  readonly limit: number
}

/** A cancelled recovery's rows go back to where they were; a row in a round ends in it. */
export const withdrawParked = async (
  tx: Sql,
  { id, partitions, limit }: Withdrawal,
): Promise<readonly (ChainKey & { readonly bytes: number })[]> => {
  const { rows } = await tx.query<ChainKey & { readonly bytes: number }>(
    `with gone as (
       delete from parked where id in (
         select id from parked where recovery_id = $1 and lease_owner is null
            and (topic, partition) in (select * from unnest($2::text[], $3::int[]))
          limit $4 for update skip locked)
       returning topic, partition, log_offset, destination_id, chain, body_bytes
     ), back as (
       update dead d set replayed_at = null, recovery_id = null from gone g
        where d.topic = g.topic and d.partition = g.partition and d.log_offset = g.log_offset
          and d.destination_id = g.destination_id and d.recovery_id = $1
     ), counted as (
       update recovery set recovered = recovered - (select count(*) from gone) where id = $1
     )
     select topic, partition, destination_id as "destinationId", chain, body_bytes as bytes from gone`,
    [id, partitions.map(({ topic }) => topic), partitions.map(({ partition }) => partition), limit],
  )
  return rows
}

/** When nothing of it is parked any more in any partition. */
export const closeWithdrawn = async (tx: Sql, id: number): Promise<void> => {
  await tx.query(
    `update recovery set withdrawn = true
      where id = $1 and not exists (select from parked where recovery_id = $1)`,
    [id],
  )
}

type Healed = {
  readonly destinationId: number
  readonly reason: string
  readonly since: Date
  readonly at: Date
  readonly ratePerSecond: number
}

/** A recovery starts with the credit of a second. */
export const creditBeforeMs = 1_000

/** One for each healing, however many processes hear of it: what went out again is not dead any more. */
export const insertHealing = async (tx: Sql, healed: Healed): Promise<number | null> => {
  const { rows } = await tx.query<{ id: number }>(
    `insert into recovery (destination_id, origin, actor, state, reason, since, rate_per_second, matched,
       credited_at, created_at)
     select $1, 'heal', 'replay_on_heal', 'running', $2, $3, $4, m.amount, $6, $5
       from (select count(*) as amount from dead where destination_id = $1 and reason = $2
                and replayed_at is null and dead_at >= $3 and dead_at <= $5) m
      where m.amount > 0 and not exists (select from recovery
             where destination_id = $1 and origin = 'heal' and state in ('running', 'paused'))
     returning id`,
    [
      healed.destinationId,
      healed.reason,
      healed.since,
      healed.ratePerSecond,
      healed.at,
      new Date(healed.at.getTime() - creditBeforeMs),
    ],
  )
  return rows[0]?.id ?? null
}
