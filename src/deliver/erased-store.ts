// What is parked of erased users: listed by who erases them, given up here, by the owner of its partition.
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ChainKey } from './chain-store.ts'
import type { Cancelled } from './dead-store.ts'
import { total } from './ledger-store.ts'
import type { Partition } from './stage.ts'

type Erasing = {
  readonly partitions: readonly Partition[]
  readonly at: Date
  readonly limit: number
}

/** Without a dead letter, which would keep the body. A lease that runs ends in its round, and is asked for again. */
export const cancelErased = async (
  tx: Sql,
  { partitions, at, limit }: Erasing,
): Promise<Cancelled> => {
  const { rows } = await tx.query<ChainKey & { readonly topic: Topic; readonly bytes: number }>(
    `with due as materialized (
       select p.id from parked_erasure e join parked p on p.id = e.parked_id
         join unnest($1::text[], $2::int[]) as h(topic, partition) using (topic, partition)
        where p.lease_owner is null or p.lease_until <= $3
        order by p.id limit $4 for update of p skip locked
     ), gone as (
       delete from parked p using due where p.id = due.id
       returning p.id, p.topic, p.partition, p.destination_id, p.chain, p.body_bytes
     ), done as (
       delete from parked_erasure e using gone where e.parked_id = gone.id
     )
     select topic, partition, destination_id as "destinationId", chain, body_bytes as bytes from gone`,
    [partitions.map(({ topic }) => topic), partitions.map(({ partition }) => partition), at, limit],
  )
  const entries = total(rows.map((row) => ({ ...row, bytes: -row.bytes, cancelled: 1 })))
  return { keys: rows, entries }
}
