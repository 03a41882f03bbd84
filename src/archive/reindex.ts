// Making the index anew from the store alone: for a database that was lost, or a store that was moved.
import type { Connection, Pool, Sql } from '../postgres/sql.ts'
import { type Found, findSegments, inspect, pickedOf, rowOf } from './inspect.ts'
import { saveSegment } from './manifest.ts'
import {
  closeGathering,
  foundInOrder,
  gathered,
  noteFound,
  openGathering,
  readEpochs,
  swapIndex,
} from './reindex-store.ts'
import type { Store } from './store.ts'

type Reindexing = {
  readonly pool: Pool
  readonly store: Store
  readonly at: Date
  readonly limits?: Partial<typeof reindexLimits>
}

export const reindexLimits = {
  /** Names in memory at a time. */
  pieceMax: 1_000,
  /** Of files that cannot be read, those that are told; the others are counted. */
  refusedMax: 1_000,
}

export type Reindexed = {
  readonly segments: number
  readonly entries: number
  /** Files that were left out of the index. */
  readonly leftOut: number
  /** The first of them, and why. */
  readonly refused: readonly { readonly path: string; readonly problem: string }[]
}

/** By topic and partition, where its last segment ends. */
type Ends = Map<string, { readonly topic: string; readonly partition: number; next: bigint }>

/**
 * Every file is read before a row is touched; then all rows change in one transaction. Whoever archives
 * meanwhile loses its partitions by that, and gains them again at the end of what the store holds.
 */
export const reindexArchive = (work: Reindexing): Promise<Reindexed> =>
  work.pool.connect(async (connection) => {
    await openGathering(connection)
    await find(connection, work)
    const { made, ends } = await gather(connection, work)
    // What fails leaves nothing: the connection is given up, and with it what it had begun.
    await connection.query('begin')
    await moveToEnds(connection, ends)
    await swapIndex(connection)
    await connection.query('commit')
    await closeGathering(connection)
    return made
  })

const find = async (connection: Connection, { store, limits }: Reindexing): Promise<void> => {
  const { pieceMax } = { ...reindexLimits, ...limits }
  let piece: Found[] = []
  for await (const found of findSegments(store)) {
    piece.push(found)
    if (piece.length < pieceMax) continue
    await noteFound(connection, piece)
    piece = []
  }
  await noteFound(connection, piece)
}

const gather = async (connection: Connection, { store, at, limits }: Reindexing) => {
  const { pieceMax, refusedMax } = { ...reindexLimits, ...limits }
  const made = {
    segments: 0,
    entries: 0,
    leftOut: 0,
    refused: [] as Reindexed['refused'][number][],
  }
  const ends: Ends = new Map()
  for await (const segment of pickedOf(foundInOrder(connection, pieceMax))) {
    const { topic, partition, path, next } = segment
    ends.set(`${topic}/${partition}`, { topic, partition, next })
    try {
      const row = rowOf(segment, await inspect(store, segment), at)
      await saveSegment(connection, row, gathered)
      made.segments += 1
      made.entries += row.entries
    } catch (error) {
      made.leftOut += 1
      const problem = (error as Error).message
      if (made.refused.length < refusedMax) made.refused.push({ path, problem })
    }
  }
  return { made, ends }
}

/** Epochs go beyond those of all files, so that no owner ever writes a name that is there. */
const moveToEnds = async (tx: Sql, ends: Ends): Promise<void> => {
  const all = (await readEpochs(tx)).flatMap(({ topic, partition, epoch }) => {
    const end = ends.get(`${topic}/${partition}`)
    return end ? [{ ...end, epoch }] : []
  })
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
