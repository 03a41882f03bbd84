// How far each reader has come in each partition, and the epoch that fences its zombies.
// A reader's every write is conditional on the epoch it gained: 0 rows means somebody else took over.
import type { Topic } from '../log/log.ts'
import type { Sql } from './sql.ts'

export type ReaderName = 'project' | 'deliver' | 'archive'

export type PositionKey = {
  readonly reader: ReaderName
  readonly topic: Topic
  readonly partition: number
}

export type Position = {
  readonly next: bigint
  readonly epoch: bigint
  /** The reader's own bytes (deliver: completion bitmap and relay marks). */
  readonly state: Buffer | null
}

/** Takes the partition over: bumps the epoch, so that every earlier owner's writes miss. */
export const gainPosition = async (sql: Sql, key: PositionKey): Promise<Position> => {
  const { rows } = await sql.query<Position>(
    `insert into position (reader, topic, partition, next, epoch)
     values ($1, $2, $3, 0, 1)
     on conflict (reader, topic, partition) do update set epoch = position.epoch + 1
     returning next, epoch, state`,
    [key.reader, key.topic, key.partition],
  )
  return rows[0] as Position
}

export type Move = PositionKey & {
  readonly epoch: bigint
  readonly next: bigint
  readonly state?: Uint8Array | null
}

/**
 * Moves positions in one statement, each only where its epoch still holds. Rows are locked in
 * (topic, partition) order, the first rung of the lock order every writer keeps.
 * Returns the keys that moved; a missing one was lost.
 */
export const movePositions = async (
  sql: Sql,
  moves: readonly Move[],
): Promise<readonly PositionKey[]> => {
  const { rows } = await sql.query<PositionKey>(
    `with wanted as (
       select * from unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bytea[])
         as w(reader, topic, partition, epoch, next, state)
     ), locked as (
       select p.reader, p.topic, p.partition, w.next, w.state
         from position p join wanted w using (reader, topic, partition, epoch)
        order by p.topic, p.partition for update of p
     )
     update position p set next = l.next, state = coalesce(l.state, p.state)
       from locked l
      where (p.reader, p.topic, p.partition) = (l.reader, l.topic, l.partition)
     returning p.reader, p.topic, p.partition`,
    [
      moves.map((move) => move.reader),
      moves.map((move) => move.topic),
      moves.map((move) => move.partition),
      moves.map((move) => move.epoch),
      moves.map((move) => move.next),
      moves.map((move) => move.state ?? null),
    ],
  )
  return rows
}
