// Enters the deletions that calls ask for, in the transaction of the batch they were read in.
import { numberList, textList } from '../audience/lists.ts'
import type { Message } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

type Read = { readonly message: Message }

/** Once for each message, however often its batch is written. */
export const saveDeletions = async (tx: Sql, calls: readonly Read[]): Promise<void> => {
  const asked = calls.filter(({ message: { type, filtered } }) => type === 'delete' && !filtered)
  if (asked.length === 0) return
  await tx.query(
    `insert into deletion_request
       (workspace_id, source_id, message_id, user_id, anonymous_id, origin, created_at)
     select workspace_id, source_id, message_id, user_id, anonymous_id, 'call', created_at
       from unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
         as d(workspace_id, source_id, message_id, user_id, anonymous_id, created_at)
      order by workspace_id, source_id, message_id
     on conflict do nothing`,
    [
      numberList(asked.map(({ message }) => message.workspaceId)),
      numberList(asked.map(({ message }) => message.sourceId)),
      textList(asked.map(({ message }) => message.messageId)),
      asked.map(({ message }) => message.userId),
      asked.map(({ message }) => message.anonymousId),
      asked.map(({ message }) => new Date(message.receivedAt)),
    ],
  )
}
