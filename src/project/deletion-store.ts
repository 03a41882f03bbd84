// Enters the deletions that calls ask for, in the transaction of the batch they were read in.
import { numberList, textList } from '../audience/lists.ts'
import { isOrder } from '../domain/erasure.ts'
import type { Message } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

type Read = { readonly message: Message }

/** Duplicates are not among the calls: each that asks is one request. */
export const saveDeletions = async (tx: Sql, calls: readonly Read[]): Promise<void> => {
  const asked = calls.filter(
    ({ message }) => message.type === 'delete' && !message.filtered && !isOrder(message),
  )
  if (asked.length === 0) return
  await tx.query(
    `with asked as materialized (
       select nextval(pg_get_serial_sequence('deletion_request', 'id'))::int as id, d.*
         from unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
           as d(workspace_id, source_id, message_id, user_id, anonymous_id, created_at)
     ), made as (
       insert into deletion_request
         (id, workspace_id, source_id, message_id, origin, kind, created_at)
       overriding system value
       select id, workspace_id, source_id, message_id, 'call', 'delete_only', created_at from asked
     )
     insert into deletion_subject (request_id, n, kind, value)
     select a.id, s.n, s.n, s.value
       from asked a cross join lateral (values (0, a.user_id), (1, a.anonymous_id)) as s(n, value)
      where s.value is not null`,
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
