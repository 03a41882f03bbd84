// The SQL of the Postgres log's groups: members, their leases, what was committed.
import type { Sql } from '../postgres/sql.ts'
import type { Place, Topic } from './log.ts'
import type { OwnedPlace } from './postgres-share.ts'

/** 'MEMB' read as a number: first half of the advisory lock that each member's session holds. */
const memberClass = 1296387394

/** 'GRUP': one member at a time looks at a group and changes who holds what. */
const groupClass = 1196578128

/** Enters the group; the session's own lock shows the others that it lives. In a transaction. */
export const insertMember = async (
  tx: Sql,
  group: string,
  topics: readonly Topic[],
): Promise<number> => {
  const { rows } = await tx.query<{ number: number }>(
    'insert into log_member (group_name, topics) values ($1, $2) returning number',
    [group, topics],
  )
  const { number } = rows[0] as { number: number }
  await tx.query('select pg_advisory_lock($1, $2)', [memberClass, number])
  await insertLeases(tx, group, topics)
  return number
}

const insertLeases = (tx: Sql, group: string, topics: readonly Topic[]) =>
  tx.query(
    `insert into log_lease (group_name, topic, partition)
     select $1, topic, partition from log_partition where topic = any ($2) on conflict do nothing`,
    [group, topics],
  )

export const lockGroup = (tx: Sql, group: string) =>
  tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [groupClass, group])

/** False when the member was declared dead. */
export const beat = async (tx: Sql, member: number): Promise<boolean> => {
  const { rowCount } = await tx.query('update log_member set beat = beat + 1 where number = $1', [
    member,
  ])
  return rowCount === 1
}

export type SeenMember = {
  readonly number: number
  readonly topics: readonly Topic[]
  readonly beat: bigint
  /** Whether its session is still connected. */
  readonly connected: boolean
}

export const selectMembers = async (tx: Sql, group: string): Promise<readonly SeenMember[]> => {
  const { rows } = await tx.query<SeenMember>(
    `select m.number, m.topics, m.beat, exists (
              select from pg_locks l
               where l.locktype = 'advisory' and l.granted and l.objsubid = 2
                 and l.classid = $2::oid and l.objid = m.number::oid
                 and l.database = (select oid from pg_database where datname = current_database())
            ) as connected
       from log_member m where m.group_name = $1`,
    [group, memberClass],
  )
  return rows
}

/** Their leases fall free with them. */
export const deleteMembers = (tx: Sql, members: readonly number[]) =>
  tx.query('delete from log_member where number = any ($1::int[])', [members])

export const selectPlaces = async (tx: Sql, group: string): Promise<readonly OwnedPlace[]> => {
  const { rows } = await tx.query<OwnedPlace>(
    'select topic, partition, owner from log_lease where group_name = $1',
    [group],
  )
  return rows
}

export type Owning = { readonly group: string; readonly member: number }

export type Claimed = Place & { readonly committed: bigint | null }

/** Takes the places that are still free. */
export const claimPlaces = async (
  tx: Sql,
  { group, member }: Owning,
  places: readonly Place[],
): Promise<readonly Claimed[]> => {
  const { rows } = await tx.query<Claimed>(
    `update log_lease l set owner = $2
       from unnest($3::text[], $4::int[]) as w(topic, partition)
      where l.group_name = $1 and l.topic = w.topic and l.partition = w.partition
        and l.owner is null
     returning l.topic, l.partition, l.committed`,
    [group, member, topicsOf(places), partitionsOf(places)],
  )
  return rows
}

export const freePlaces = (sql: Sql, { group, member }: Owning, places: readonly Place[]) =>
  sql.query(
    `update log_lease l set owner = null
       from unnest($3::text[], $4::int[]) as w(topic, partition)
      where l.group_name = $1 and l.topic = w.topic and l.partition = w.partition
        and l.owner = $2`,
    [group, member, topicsOf(places), partitionsOf(places)],
  )

/** False when the place belongs to somebody else, or to nobody. */
export const commitPlace = async (
  sql: Sql,
  { group, member }: Owning,
  { topic, partition, next }: Place & { readonly next: bigint },
): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update log_lease set committed = $5
      where group_name = $1 and topic = $3 and partition = $4 and owner = $2`,
    [group, member, topic, partition, next],
  )
  return rowCount === 1
}

/** Tells the other members to look now. */
export const notifyGroup = (sql: Sql, group: string) =>
  sql.query(`select pg_notify('log', $1)`, [channelName(group)])

export const channelName = (group: string) => `group:${group}`

const topicsOf = (places: readonly Place[]) => places.map(({ topic }) => topic)

const partitionsOf = (places: readonly Place[]) => places.map(({ partition }) => partition)
