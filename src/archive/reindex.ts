// Making the index anew from the store alone: for a database that was lost, or a store that was moved.
import type { Pool, Sql } from '../postgres/sql.ts'
import { chosen, type Found, inspect, listSegments, rowOf } from './inspect.ts'
import { saveSegment } from './manifest.ts'
import type { Store } from './store.ts'

type Reindexing = {
  readonly pool: Pool
  readonly store: Store
  readonly at: Date
  /** Told of each segment that was read. */
  readonly read?: (done: number, all: number) => void
}

export type Reindexed = {
  readonly segments: number
  readonly entries: number
  /** Left out of the index, and why. */
  readonly refused: readonly { readonly path: string; readonly problem: string }[]
}

/**
 * Every file is read before a row is touched; then all rows change in one transaction. Whoever archives
 * meanwhile loses its partitions by that, and gains them again at the end of what the store holds.
 */
export const reindexArchive = async (work: Reindexing): Promise<Reindexed> => {
  const { pool, store, at, read } = work
  const found = chosen(await listSegments(store))
  const rows: Parameters<typeof saveSegment>[1][] = []
  const refused: { path: string; problem: string }[] = []
  for (const [done, segment] of found.entries()) {
    try {
      rows.push(rowOf(segment, await inspect(store, segment), at))
    } catch (error) {
      refused.push({ path: segment.path, problem: (error as Error).message })
    }
    read?.(done + 1, found.length)
  }
  await pool.transaction(async (tx) => {
    await moveToEnds(tx, found)
    await tx.query('delete from archive_segment')
    for (const row of rows) await saveSegment(tx, row)
  })
  return {
    segments: rows.length,
    entries: rows.reduce((sum, { entries }) => sum + entries, 0),
    refused,
  }
}

/** Epochs go beyond those of all files, so that no owner ever writes a name that is there. */
const moveToEnds = async (tx: Sql, found: readonly Found[]): Promise<void> => {
  const ends = new Map<string, { topic: string; partition: number; next: bigint; epoch: bigint }>()
  for (const { topic, partition, next, epoch } of found) {
    const place = `${topic}/${partition}`
    const other = ends.get(place)
    const highest = other !== undefined && other.epoch > epoch ? other.epoch : epoch
    ends.set(place, { topic, partition, next, epoch: highest })
  }
  const all = [...ends.values()]
  await tx.query(
    `update position set epoch = epoch + 1 where (reader, topic, partition) in
       (select reader, topic, partition from position where reader = 'archive'
         order by topic, partition for update)`,
  )
  await tx.query(
    `insert into position (reader, topic, partition, next, epoch)
     select 'archive', topic, partition, next, epoch + 1
       from unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) as e(topic, partition, next, epoch)
      order by topic, partition
     on conflict (reader, topic, partition) do update
       set next = excluded.next, epoch = greatest(position.epoch, excluded.epoch)`,
    [
      all.map(({ topic }) => topic),
      all.map(({ partition }) => partition),
      all.map(({ next }) => next),
      all.map(({ epoch }) => epoch),
    ],
  )
}
