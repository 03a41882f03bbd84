// The order to erase one id's profile, as it stands in the log: what comes before it there is erased with it.
import { type Identity, type IdentityKind, identityOf, isBlocked } from './identity.ts'
import { digestOf, isObject, type Json, type Message } from './message.ts'

/** One of the ids of a deletion request. */
export type Ordered = {
  readonly requestId: number
  readonly n: number
  readonly workspaceId: number
  readonly kind: IdentityKind
  readonly value: string
  /** When the request was made. */
  readonly createdAt: Date
}

/** No source has it: calls that ask for a deletion come from one. */
const ownSourceId = 0

/** The same bytes however often it is made, so that a second one is a duplicate of the first. */
export const orderOf = ({
  requestId,
  n,
  workspaceId,
  kind,
  value,
  createdAt,
}: Ordered): Message => {
  const messageId = `deletion:${requestId}:${n}`
  const at = createdAt.getTime()
  const ids = {
    userId: kind === 'user' ? value : null,
    anonymousId: kind === 'anonymous' ? value : null,
  }
  const body = { type: 'delete', messageId, deletion: { request: requestId, subject: n } }
  return {
    messageId,
    digest: digestOf({ workspaceId, sourceId: ownSourceId, messageId }),
    type: 'delete',
    workspaceId,
    sourceId: ownSourceId,
    ...ids,
    previousId: null,
    groupId: null,
    event: null,
    timestamp: at,
    originalTimestamp: at,
    sentAt: null,
    receivedAt: at,
    body: Buffer.from(JSON.stringify(body)),
    filtered: null,
  }
}

export const isOrder = ({ type, sourceId }: Pick<Message, 'type' | 'sourceId'>): boolean =>
  type === 'delete' && sourceId === ownSourceId

export type Order = {
  readonly requestId: number
  readonly n: number
  readonly identity: Identity
}

/** `null` for every other call, and for an order of nobody. */
export const readOrder = (message: Message): Order | null => {
  if (!isOrder(message)) return null
  const { workspaceId, userId, anonymousId } = message
  const value = userId ?? anonymousId
  if (value === null || isBlocked(value)) return null
  const body = JSON.parse(Buffer.from(message.body).toString()) as Json
  const deletion = isObject(body) ? body['deletion'] : undefined
  if (!isObject(deletion)) return null
  return {
    requestId: Number(deletion['request']),
    n: Number(deletion['subject']),
    identity: identityOf(workspaceId, userId === null ? 'anonymous' : 'user', value),
  }
}
