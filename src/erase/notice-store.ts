// Who is told of a deletion: notices go into `outbox`, in the transaction that ends their request.
import { createHash } from 'node:crypto'
import type { Configuration } from '../domain/configuration.ts'
import type { Sql } from '../postgres/sql.ts'
import type { OpenRequest } from './request-store.ts'

/** One erased profile. */
export type Profile = {
  readonly userKey: bigint
  readonly userIds: readonly string[]
  /** 0 among them: any of the workspace may have seen it. */
  readonly sourceIds: readonly number[]
}

export const loadProfiles = async (sql: Sql, requestId: number): Promise<readonly Profile[]> => {
  const { rows } = await sql.query<Profile>(
    `select p.user_key as "userKey", p.sources as "sourceIds",
            array(select i.value from deletion_identity i
                   where i.request_id = p.request_id and i.user_key = p.user_key and i.kind = 0
                   order by i.value collate "C") as "userIds"
       from deletion_profile p where p.request_id = $1 order by p.user_key`,
    [requestId],
  )
  return rows
}

export type Notice = {
  readonly messageId: string
  readonly sourceId: number
  readonly destinationId: number
  readonly userId: string
  readonly shard: number
  readonly body: Buffer
}

type Deciding = {
  readonly request: Pick<OpenRequest, 'id' | 'workspaceId' | 'createdAt'>
  readonly profiles: readonly Profile[]
  readonly configuration: Pick<Configuration, 'sources' | 'destinationsBySource'>
}

/** One for each user id, source that saw the user, and destination that is on for it. */
export const noticesOf = ({ request, profiles, configuration }: Deciding): readonly Notice[] => {
  const all = [...configuration.sources.values()]
    .filter(({ workspaceId }) => workspaceId === request.workspaceId)
    .map(({ id }) => id)
  return profiles.flatMap(({ userKey, userIds, sourceIds }) => {
    const seen = sourceIds.includes(0) ? all : sourceIds
    return userIds.flatMap((userId) =>
      seen.flatMap((sourceId) =>
        (configuration.destinationsBySource.get(sourceId) ?? [])
          .filter(({ enabled, webhooks }) => enabled && webhooks.length > 0)
          .map(({ id: destinationId }) => ({
            messageId: idOf(request.id, { userId, sourceId, destinationId }),
            sourceId,
            destinationId,
            userId,
            shard: Number(userKey % 64n),
            body: bodyOf(userId, request.createdAt),
          })),
      ),
    )
  })
}

type Told = Pick<Notice, 'userId' | 'sourceId' | 'destinationId'>

/** The same for the same, so that a receiver may know one that it gets twice. */
const idOf = (requestId: number, { userId, sourceId, destinationId }: Told): string => {
  const digest = createHash('sha256')
    .update(`deletion ${requestId} ${sourceId} ${destinationId} ${userId}`)
    .digest('hex')
  return `deletion-${digest.slice(0, 32)}`
}

const bodyOf = (userId: string, at: Date): Buffer =>
  Buffer.from(JSON.stringify({ type: 'delete', userId, timestamp: at.toISOString() }))

type Saving = { readonly request: Pick<OpenRequest, 'id' | 'workspaceId' | 'createdAt'> }

/** `seq` ascends in commit order within a shard; its row is locked in the order of shards. */
export const saveNotices = async (
  tx: Sql,
  notices: readonly Notice[],
  { request }: Saving,
): Promise<void> => {
  if (notices.length === 0) return
  await tx.query(
    `with told as materialized (
       select *, row_number() over (partition by shard order by at) as nth
         from unnest($2::smallint[], $3::text[], $4::int[], $5::text[], $6::bytea[], $9::int[])
           with ordinality as n(shard, message_id, destination_id, user_id, body, source_id, at)
     ), locked as materialized (
       select s.shard from outbox_shard s where s.shard in (select shard from told)
        order by s.shard for update
     ), moved as (
       update outbox_shard s set seq = s.seq + c.count
         from (select t.shard, count(*) as count from told t join locked using (shard) group by 1) c
        where s.shard = c.shard returning s.shard, s.seq - c.count as before
     ), counted as (
       insert into deletion_notice (request_id, source_id, destination_id, notices)
       select $1, source_id, destination_id, count(*) from told group by 2, 3
     )
     insert into outbox (shard, seq, run_id, message_id, origin, type, workspace_id,
                         destination_id, user_id, at, body)
     select t.shard, m.before + t.nth, -$1::bigint, t.message_id, 'notice', 'delete', $7,
            t.destination_id, t.user_id, $8, t.body
       from told t join moved m using (shard)`,
    [
      request.id,
      notices.map(({ shard }) => shard),
      notices.map(({ messageId }) => messageId),
      notices.map(({ destinationId }) => destinationId),
      notices.map(({ userId }) => userId),
      notices.map(({ body }) => body),
      request.workspaceId,
      request.createdAt,
      notices.map(({ sourceId }) => sourceId),
    ],
  )
}
