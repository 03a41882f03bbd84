// Whose entries are to go from segments: users whose erasure was asked for.
import type { Suspect } from '../domain/suppression.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Head } from './line.ts'

/** The erasures up to `upTo`, as one question. */
export type Erasing = {
  readonly upTo: bigint
  /** Whether the entry was sent before its user's erasure was asked for. */
  isErased(suspect: Suspect): boolean
}

export type Erasures = {
  /** The number of the newest erasure, 0n before the first. */
  newest(sql: Sql): Promise<bigint>
  /** Those above `after`. */
  load(sql: Sql, after: bigint): Promise<Erasing>
}

export const isErased = (erasing: Erasing, head: Head): boolean => {
  const sentAt = new Date(head.sentAt ?? head.receivedAt)
  const { workspaceId, userId, anonymousId = null, previousId = null } = head
  if (erasing.isErased({ workspaceId, userId, anonymousId, sentAt })) return true
  // An alias names its user under either id.
  return (
    previousId !== null &&
    (erasing.isErased({ workspaceId, userId: previousId, anonymousId: null, sentAt }) ||
      erasing.isErased({ workspaceId, userId: null, anonymousId: previousId, sentAt }))
  )
}
