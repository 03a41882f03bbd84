// Which calls are to be dropped because their user asked to be forgotten. Pure.
import { type IdentityKind, identityKinds } from './identity.ts'
import type { Message } from './message.ts'
import { isHistorical } from './routing.ts'

/** Whose call it is, and when it came: late calls of a deleted user are those sent before the request. */
export type Suspect = {
  readonly workspaceId: number
  readonly userId: string | null
  readonly anonymousId: string | null
  /** Of an alias call: whom it would make known again. */
  readonly previousId?: string | null
  /** When the client sent it where that is known, else when it was received. */
  readonly sentAt: Date
}

/** Answers from memory; in force within 5 s of the request in every process. */
export type Suppressions = {
  isSuppressed(suspect: Suspect): boolean
  /** Another one whenever answers may have changed. */
  version?(): bigint
  /** What an id that was ever to be forgotten is known by; `null` for every other. */
  hashOfForgotten?(workspaceId: number, kind: IdentityKind, value: string): Uint8Array | null
}

export const nobodySuppressed: Suppressions = { isSuppressed: () => false }

const historicalMs = 86_400_000

type Sent = Pick<
  Message,
  'workspaceId' | 'userId' | 'anonymousId' | 'previousId' | 'sentAt' | 'receivedAt' | 'timestamp'
>

/**
 * A message of the log as a suspect. History is of its own time: an import does not bring a deleted user
 * back, whenever it is made. A client's clock may be ahead, so nothing was sent after it was received.
 */
export const suspectOf = (message: Sent): Suspect => {
  const { workspaceId, userId, anonymousId, previousId, receivedAt } = message
  const sentAt = isHistorical(message, historicalMs)
    ? message.timestamp
    : Math.min(message.sentAt ?? receivedAt, receivedAt)
  return { workspaceId, userId, anonymousId, previousId, sentAt: new Date(sentAt) }
}

/** Whether a message of the log is to be dropped; orders to delete are always heard. */
export const isDropped = (
  suppressions: Suppressions,
  message: Sent & Pick<Message, 'type'>,
): boolean =>
  suppressions !== nobodySuppressed &&
  message.type !== 'delete' &&
  suppressions.isSuppressed(suspectOf(message))

/** One id as it is hashed: equal to the text of its identity. */
export const suppressionText = (workspaceId: number, kind: IdentityKind, value: string): string =>
  `${workspaceId}:${identityKinds[kind]}:${value}`
