// A change: one user entered or left one audience, or has another value of a computed trait, and the
// identify message a destination gets for it.
import { hash } from 'node:crypto'
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
const identifyBody = ({ audience, userId, member, value, at }: Change): Uint8Array => {
  const told = audience.kind === 'trait' ? JSON.stringify(JSON.parse(value ?? 'null')) : member
  // A sync writes many: put together by hand in half the time.
  return Buffer.from(
    `{"version":1,"type":"identify","userId":${JSON.stringify(userId)},"traits":{${JSON.stringify(audience.key)}:${told}},"timestamp":"${at.toISOString()}"}`,
  )
}

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
  const hex = hash(
    'sha1',
    `${audience.id}:${audience.version}:${destinationId}:${shard}:${seq}:${userId}`,
  )
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
