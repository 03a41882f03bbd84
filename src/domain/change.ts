// A change: one user entered or left one audience, or has another value of a computed trait, and the
// identify message a destination gets for it.
import { createHash } from 'node:crypto'
import type { Outbound } from './message.ts'

export type Change = {
  readonly audience: {
    readonly id: number
    readonly kind: 'audience' | 'trait'
    readonly workspaceId: number
    /** The property: snake_case of the audience's name. */
    readonly key: string
    readonly name: string
    readonly version: string
  }
  readonly userId: string
  readonly member: boolean
  /** Of a computed trait, as JSON; `null` once there is none any more. */
  readonly value: string | null
  readonly at: Date
}

type Place = { readonly shard: number; readonly seq: number; readonly destinationId: number }

/** The webhook message as it is sent and signed: these keys, in this order. */
const identifyBody = ({ audience, userId, member, value, at }: Change): Uint8Array =>
  Buffer.from(
    JSON.stringify({
      version: 1,
      type: 'identify',
      userId,
      traits: { [audience.key]: audience.kind === 'trait' ? JSON.parse(value ?? 'null') : member },
      timestamp: at.toISOString(),
    }),
  )

/** The track message that may go beside it. */
const entryBody = ({ audience, userId, member, at }: Change): Uint8Array =>
  Buffer.from(
    JSON.stringify({
      version: 1,
      type: 'track',
      userId,
      event: member ? 'Audience Entered' : 'Audience Exited',
      properties: { audience_key: audience.key, audience_name: audience.name },
      timestamp: at.toISOString(),
    }),
  )

/** One message per place, first place first; they share one body. */
export const renderChange = (change: Change, places: readonly Place[]): readonly Outbound[] =>
  render(change, { type: 'identify', body: identifyBody(change) }, places)

export const renderEntry = (change: Change, places: readonly Place[]): readonly Outbound[] =>
  render(change, { type: 'track', body: entryBody(change) }, places)

type Message = Pick<Outbound, 'type' | 'body'>

const render = (
  change: Change,
  { type, body }: Message,
  places: readonly Place[],
): readonly Outbound[] => {
  const at = change.at.getTime()
  return places.map((place) => ({
    messageId: messageIdOf(change, place),
    origin: change.audience.kind,
    type,
    workspaceId: change.audience.workspaceId,
    destinationId: place.destinationId,
    userId: change.userId,
    timestamp: at,
    receivedAt: at,
    shard: place.shard,
    seq: place.seq,
    body,
  }))
}

/** A version 5 UUID of everything that makes the message this one and no other. */
const messageIdOf = ({ audience, userId }: Change, { shard, seq, destinationId }: Place) => {
  const hash = createHash('sha1')
    .update(`${audience.id}:${audience.version}:${destinationId}:${shard}:${seq}:${userId}`)
    .digest()
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6)
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = hash.toString('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join('-')
}
