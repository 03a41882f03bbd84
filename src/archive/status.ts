// How the archive stands, as operators are shown it: by partition, from what its owners told the database.
import type { Sql } from '../postgres/sql.ts'

export type PartitionStatus = {
  readonly topic: string
  readonly partition: number
  readonly segments: number
  readonly entries: number
  readonly bytes: number
  /** The first offset archived, and the next one to be. */
  readonly start: bigint
  readonly next: bigint
  readonly receivedFrom: Date | null
  readonly receivedTo: Date | null
  /** As the log was when its archive's owner looked last; null: nobody has looked yet. */
  readonly logStart: bigint | null
  readonly logEnd: bigint | null
  readonly seenAt: Date | null
  readonly trouble: string | null
  readonly troubleAt: Date | null
}

export const loadArchiveStatus = async (sql: Sql): Promise<readonly PartitionStatus[]> => {
  const { rows } = await sql.query<PartitionStatus>(
    `select topic, partition, coalesce(s.segments, 0) as segments, coalesce(s.entries, 0) as entries,
            coalesce(s.bytes, 0) as bytes, coalesce(s.start, p.next) as start, p.next,
            s.received_from as "receivedFrom", s.received_to as "receivedTo",
            a.log_start as "logStart", a.log_end as "logEnd", a.seen_at as "seenAt",
            a.trouble, a.trouble_at as "troubleAt"
       from (select topic, partition, next from position where reader = 'archive') p
       left join archive_partition a using (topic, partition)
       left join (
         select topic, partition, count(*)::float8 as segments, sum(entries)::float8 as entries,
                sum(bytes)::float8 as bytes, min(first_offset) as start,
                min(received_from) as received_from, max(received_to) as received_to
           from archive_segment group by 1, 2) s using (topic, partition)
      order by topic, partition`,
  )
  return rows
}
