// Whose entries are to go from segments: users whose deletion was asked for.
import { type Suspect, suspectOf } from '../domain/suppression.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Head } from './line.ts'

/** The erasures up to `upTo`, as one question. */
export type Erasing = {
  readonly upTo: bigint
  /** Whether the entry was sent before its user's deletion was asked for. */
  isErased(suspect: Suspect): boolean
}

export type Erasures = {
  /** The number of the newest erasure, 0n before the first. */
  newest(sql: Sql): Promise<bigint>
  /** Those above `after`. */
  load(sql: Sql, after: bigint): Promise<Erasing>
}

/**
 * The request's own entries go with the rest, though they are of its very instant: where nothing of a user is left,
 * there is nothing to erase again.
 */
export const isErased = (erasing: Erasing, head: Head): boolean => {
  const suspect = suspectOf({ sentAt: null, anonymousId: null, previousId: null, ...head })
  if (head.type !== 'delete') return erasing.isErased(suspect)
  return erasing.isErased({ ...suspect, sentAt: new Date(suspect.sentAt.getTime() - 1) })
}
