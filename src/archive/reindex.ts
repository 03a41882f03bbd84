// Making the index anew from the store alone: for a database that was lost, or a store that was moved.
import { transact } from '../postgres/pool.ts'
import type { Connection, Pool, Sql } from '../postgres/sql.ts'
import {
  type Finding,
  type Found,
  findSegments,
  gapOf,
  inspect,
  pickedOf,
  rowOf,
} from './inspect.ts'
import { saveSegment } from './manifest.ts'
import {
  findMissing,
  foundInOrder,
  gathered,
  gathering,
  noteFound,
  readEpochs,
  swapIndex,
} from './reindex-store.ts'
import type { Store } from './store.ts'

type Reindexing = {
  readonly pool: Pool
  readonly store: Store
  readonly at: Date
  /** Make the index even so, without what is damaged or missing. */
  readonly withoutDamaged?: boolean
  readonly limits?: Partial<typeof reindexLimits>
}

export const reindexLimits = {
  /** Names in memory at a time. */
  pieceMax: 1_000,
  /** Of what is damaged or missing, as many are told; the others are counted. */
  refusedMax: 1_000,
}

export type Reindexed = {
  /** Whether the index is the new one: not where something is damaged or missing. */
  readonly isMade: boolean
  readonly segments: number
  readonly entries: number
  /** Files that cannot be read, files the index names that are not there, and gaps. */
  readonly leftOut: number
  /** The first of them, and why. */
  readonly refused: readonly Finding[]
}

/** By topic and partition, where its last segment ends. */
type Ends = Map<string, { readonly topic: string; readonly partition: number; next: bigint }>

/**
 * Every file is read before a row is touched; then all rows change in one transaction. Whoever archives
 * meanwhile loses its partitions by that, and gains them again at the end of what the store holds.
 *
 * What no index names is swept when archiving begins. So an index that leaves out a file ends the file, and the
 * copy that somebody brings back: it is made only where that is wanted.
 */
export const reindexArchive = (work: Reindexing): Promise<Reindexed> =>
  work.pool.connect((connection) => gathering(connection, () => reindex(connection, work)))

const reindex = async (connection: Connection, work: Reindexing): Promise<Reindexed> => {
  await find(connection, work)
  const { made, ends } = await gather(connection, work)
  const isMade = made.leftOut === 0 || work.withoutDamaged === true
  if (isMade)
    await transact(connection, async (tx) => {
      await moveToEnds(tx, ends)
      await swapIndex(tx)
    })
  return { isMade, ...made }
}

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
  const refused: Finding[] = []
  const made = { segments: 0, entries: 0, leftOut: 0, refused }
  const refuse = (path: string, problem: string): void => {
    made.leftOut += 1
    if (refused.length < refusedMax) refused.push({ path, problem })
  }
  const ends: Ends = new Map()
  for await (const segment of pickedOf(foundInOrder(connection, pieceMax))) {
    const { topic, partition, path, first, next } = segment
    const last = ends.get(`${topic}/${partition}`)
    if (last !== undefined && first !== last.next) refuse(path, gapOf(last.next, first))
    ends.set(`${topic}/${partition}`, { topic, partition, next })
    try {
      const row = rowOf(segment, await inspect(store, segment), at)
      await saveSegment(connection, row, gathered)
      made.segments += 1
      made.entries += row.entries
    } catch (error) {
      refuse(path, (error as Error).message)
    }
  }
  const missing = await findMissing(connection, refusedMax - refused.length)
  made.leftOut += missing.count
  for (const path of missing.paths) refused.push({ path, problem: 'it is not there' })
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
