// A message: one accepted call, normalised, with its ids, times and context. Immutable.
import { hash } from 'node:crypto'

export const callTypes = [
  'identify',
  'track',
  'page',
  'screen',
  'group',
  'alias',
  'delete',
] as const

export type CallType = (typeof callTypes)[number]

/** Those that a write key may send and a destination takes as calls: a delete asks for more, and comes as a notice. */
export const sentTypes = callTypes.filter((type) => type !== 'delete')

/** One record of the topics `calls` and `calls.import` (schemas/call.avsc). Times in epoch ms. */
export type Message = {
  readonly messageId: string
  /** 16 bytes of SHA-256 over workspace, source and message id: what duplicates are recognised by. */
  readonly digest: Uint8Array
  readonly type: CallType
  readonly workspaceId: number
  readonly sourceId: number
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly previousId: string | null
  readonly groupId: string | null
  /** A track call's name, so that a reader can pass over it without parsing the body. */
  readonly event: string | null
  readonly timestamp: number
  readonly originalTimestamp: number
  readonly sentAt: number | null
  readonly receivedAt: number
  /** The whole normalised call as JSON text in UTF-8: a fixed point of JSON.stringify ∘ JSON.parse. */
  readonly body: Uint8Array
  /**
   * Why it goes nowhere: a record of a call that was filtered at its source and counts as usage all
   * the same, with `{}` for its body. `null` for every call that was accepted.
   */
  readonly filtered: string | null
}

/** One record of the topic `outbound` (schemas/outbound.avsc): a webhook message the service made. */
export type Outbound = {
  readonly messageId: string
  readonly origin: 'audience' | 'trait' | 'notice' | 'replay'
  readonly type: CallType
  readonly workspaceId: number
  readonly destinationId: number
  readonly userId: string | null
  readonly timestamp: number
  readonly receivedAt: number
  /** The relay's coordinates: dense and ascending within a shard. -1 when no relay wrote it. */
  readonly shard: number
  readonly seq: number
  /** The webhook message exactly as it is sent and signed. */
  readonly body: Uint8Array
}

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json }

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

type Identity = Pick<Message, 'workspaceId' | 'sourceId' | 'messageId'>

/** Its bytes as characters first: asked for a buffer the hash takes more than twice as long. */
export const digestOf = (identity: Identity): Uint8Array => {
  const text = `${identity.workspaceId}:${identity.sourceId}:${identity.messageId}`
  return Buffer.from(hash('sha256', text, 'binary').slice(0, digestBytes), 'binary')
}

const digestBytes = 16

type Visitor = Pick<Message, 'workspaceId' | 'sourceId' | 'userId' | 'anonymousId'>

/** The log key: anonymousId first, so that one visitor stays on one partition through login. */
export const logKey = (visitor: Visitor): string =>
  `${visitor.workspaceId}:${visitor.sourceId}:${visitor.anonymousId ?? visitor.userId ?? ''}`

export const outboundKey = (outbound: Pick<Outbound, 'destinationId' | 'userId'>): string =>
  `${outbound.destinationId}:${outbound.userId ?? ''}`
