// The SQL of who left an audience while a destination, which had been told that they are in it, was off.
import type { Sql } from '../postgres/sql.ts'
import type { Member } from './page-store.ts'

type Pair = { readonly audienceId: number; readonly destinationId: number }

export type Leaver = Pair & {
  readonly userId: string
  readonly shard: number
  /** Otherwise the user is in it again. */
  readonly isGone: boolean
}

/** Only of destinations that were told of members before. */
export const noteLeavers = async (tx: Sql, leavers: readonly Leaver[]): Promise<void> => {
  if (leavers.length === 0) return
  await tx.query(
    `with noted as materialized (
       select n.* from unnest($1::int[], $2::int[], $3::text[], $4::smallint[], $5::boolean[])
         as n(audience_id, destination_id, user_id, shard, is_gone)
         join sync_destination d using (audience_id, destination_id)
     ), back as (
       delete from sync_leaver l using noted n
        where not n.is_gone and l.audience_id = n.audience_id
          and l.destination_id = n.destination_id and l.user_id = n.user_id collate "C"
     )
     insert into sync_leaver (audience_id, destination_id, user_id, shard)
     select audience_id, destination_id, user_id, shard from noted where is_gone
     on conflict do nothing`,
    [
      leavers.map(({ audienceId }) => audienceId),
      leavers.map(({ destinationId }) => destinationId),
      leavers.map(({ userId }) => userId),
      leavers.map(({ shard }) => shard),
      leavers.map(({ isGone }) => isGone),
    ],
  )
}

/** The next of them, who are forgotten here: told in the same transaction. */
export const takeLeavers = async (
  tx: Sql,
  { audienceId, destinationId, limit }: Pair & { readonly limit: number },
): Promise<readonly Omit<Member, 'userKey'>[]> => {
  const { rows } = await tx.query<Omit<Member, 'userKey'>>(
    `with taken as (
       select user_id from sync_leaver where audience_id = $1 and destination_id = $2
        order by user_id limit $3
     )
     delete from sync_leaver l using taken t
      where l.audience_id = $1 and l.destination_id = $2 and l.user_id = t.user_id
     returning l.user_id as "userId", l.shard, null as value`,
    [audienceId, destinationId, limit],
  )
  return rows
}
