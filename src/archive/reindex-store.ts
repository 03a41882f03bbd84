// What a new index is gathered in, a piece at a time: tables of one connection, gone with it. However many
// segments there are, this process holds a piece of them.
import type { Connection, Sql } from '../postgres/sql.ts'
import type { Found } from './inspect.ts'

/** Takes the rows of the new index, as `archive_segment` has them. */
export const gathered = 'gathered_segment'

/** Whatever becomes of the work, its tables and its cursor do not go back to the pool with the connection. */
export const gathering = async <R>(connection: Connection, work: () => Promise<R>): Promise<R> => {
  try {
    await openGathering(connection)
    const result = await work()
    await closeGathering(connection)
    return result
  } catch (error) {
    // The first error is the one to tell.
    await closeGathering(connection).catch(() => undefined)
    throw error
  }
}

const openGathering = async (connection: Connection): Promise<void> => {
  await connection.query(
    `create temp table found_segment (path text not null, topic text not null, partition int not null,
       first_offset bigint not null, epoch bigint not null, generation int not null)`,
  )
  await connection.query(`create temp table ${gathered} (like archive_segment including indexes)`)
}

const closeGathering = async (connection: Connection): Promise<void> => {
  await connection.query('close all')
  await connection.query(`drop table if exists found_segment, ${gathered}`)
}

export const noteFound = async (sql: Sql, found: readonly Found[]): Promise<void> => {
  await sql.query(
    `insert into found_segment (path, topic, partition, first_offset, epoch, generation)
     select * from unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::int[])`,
    [
      found.map(({ path }) => path),
      found.map(({ topic }) => topic),
      found.map(({ partition }) => partition),
      found.map(({ first }) => first),
      found.map(({ epoch }) => epoch),
      found.map(({ generation }) => generation),
    ],
  )
}

/** All paths, by topic, partition and first offset; of one offset the highest generation first. */
export async function* foundInOrder(
  connection: Connection,
  pieceMax: number,
): AsyncGenerator<string> {
  await connection.query(
    `declare found_in_order no scroll cursor with hold for select path from found_segment
      order by topic, partition, first_offset, generation desc, epoch desc`,
  )
  for (;;) {
    const { rows } = await connection.query<{ path: string }>(
      `fetch ${Math.trunc(pieceMax)} from found_in_order`,
    )
    for (const { path } of rows) yield path
    if (rows.length < pieceMax) break
  }
  await connection.query('close found_in_order')
}

/** Beyond it no owner ever wrote a name that is there. */
export const readEpochs = async (sql: Sql) => {
  const { rows } = await sql.query<{ topic: string; partition: number; epoch: bigint }>(
    'select topic, partition, max(epoch) as epoch from found_segment group by 1, 2',
  )
  return rows
}

/** What the index so far names, and the store does not hold: how many, and the first of them. */
export const findMissing = async (sql: Sql, max: number) => {
  const { rows } = await sql.query<{ path: string; count: number }>(
    `select path, (count(*) over ())::float8 as count from archive_segment s
      where not exists (select from found_segment f where f.path = s.path)
      order by topic, partition, first_offset limit $1`,
    [Math.max(1, max)],
  )
  return { count: rows[0]?.count ?? 0, paths: rows.map(({ path }) => path).slice(0, max) }
}

/** In the transaction that swaps. */
export const swapIndex = async (tx: Sql): Promise<void> => {
  await tx.query('delete from archive_segment')
  await tx.query(`insert into archive_segment select * from ${gathered}`)
}
