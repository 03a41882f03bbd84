// The SQL of paging through all members of one audience, a transaction for every page.
import type { Connection, Sql } from '../postgres/sql.ts'
import { instantSql } from './chunk-store.ts'
import { copyOutbox, outboxRows, type Posted } from './outbox-copy.ts'

export type Member = {
  readonly userKey: number
  readonly userId: string
  readonly shard: number
  /** Of a computed trait, as JSON, as its destinations know it. */
  readonly value: string | null
}

export type Page = {
  readonly epoch: bigint
  readonly at: Date
  /** The last seq given out, by shard. */
  readonly seqs: readonly number[]
}

type Wanted = {
  readonly audienceId: number
  readonly after: number
  readonly limit: number
}

export const openPage = async (tx: Sql, now: Date): Promise<Page> => {
  const { rows } = await tx.query<Pick<Page, 'epoch' | 'at'> & { seqs: string[] }>(
    `select r.epoch, ${instantSql('$1')} as at,
            array(select seq::text from outbox_shard order by shard) as seqs
       from relay r`,
    [now],
  )
  const { epoch, at, seqs } = rows[0] as (typeof rows)[number]
  return { epoch, at, seqs: seqs.map(Number) }
}

/** Those that destinations were told of, in the order of keys; by membership_pkey. */
export const readMembers = async (tx: Sql, wanted: Wanted): Promise<readonly Member[]> => {
  const { rows } = await tx.query<Member>(
    `select user_key::float8 as "userKey", user_id as "userId", shard, synced_value as value
       from membership
      where audience_id = $1 and user_key > $2 and synced and user_id is not null
      order by user_key limit $3`,
    [wanted.audienceId, wanted.after, wanted.limit],
  )
  return rows
}

/** Each shard's count goes on, so that its messages stay dense. */
export const savePage = async (tx: Connection, posted: Posted): Promise<void> => {
  const counts = Map.groupBy(posted.messages, ({ shard }) => shard)
  await tx.copyIn(copyOutbox, outboxRows(posted))
  await tx.query(
    `update outbox_shard s set seq = s.seq + c.emitted
       from unnest($1::smallint[], $2::int[]) as c(shard, emitted) where s.shard = c.shard`,
    [[...counts.keys()], [...counts.values()].map(({ length }) => length)],
  )
}

export type Joined = {
  readonly audienceId: number
  readonly destinationId: number
  /** The last user it was told of. */
  readonly after: number
}

export const readJoined = async (
  sql: Sql,
  audienceIds: readonly number[],
): Promise<readonly Joined[]> => {
  const { rows } = await sql.query<Joined>(
    `select audience_id as "audienceId", destination_id as "destinationId",
            after::float8 as after
       from sync_destination where audience_id = any($1) and after is not null
      order by audience_id, destination_id`,
    [audienceIds],
  )
  return rows
}

/** `null` once it was told of all. What was set back meanwhile stays: the next run tells it of all again. */
export const moveJoined = async (
  tx: Sql,
  { audienceId, destinationId, after: from }: Joined,
  after: number | null,
): Promise<void> => {
  await tx.query(
    `update sync_destination set after = $4
      where audience_id = $1 and destination_id = $2 and after = $3`,
    [audienceId, destinationId, from, after],
  )
}

export type Retraction = {
  readonly audienceId: number
  readonly workspaceId: number
  readonly kind: 'audience' | 'trait'
  readonly key: string
  readonly destinationIds: readonly number[]
}

/** Of audiences that nobody works out any more. */
export const readRetractions = async (sql: Sql): Promise<readonly Retraction[]> => {
  const { rows } = await sql.query<Retraction>(
    `select r.audience_id as "audienceId", r.workspace_id as "workspaceId", r.kind, r.key,
            r.destination_ids as "destinationIds"
       from retraction r left join audience_state s on s.audience_id = r.audience_id
      where s.audience_id is null order by r.audience_id`,
  )
  return rows
}

export const forgetMembers = async (
  tx: Sql,
  audienceId: number,
  members: readonly Member[],
): Promise<void> => {
  await tx.query('delete from membership where audience_id = $1 and user_key = any($2::bigint[])', [
    audienceId,
    members.map(({ userKey }) => userKey),
  ])
}

export const endRetraction = async (tx: Sql, audienceId: number): Promise<void> => {
  await tx.query('delete from membership where audience_id = $1', [audienceId])
  await tx.query('delete from retraction where audience_id = $1', [audienceId])
}
