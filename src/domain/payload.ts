// What a webhook receiver gets: the body of each message by type, as the specification's tables or with more.
import { isObject, type Json, type JsonObject, type Message } from './message.ts'

/** The integer version of the payload format; every type but delete carries it. */
export const payloadVersion = 1

export type Routed = Pick<
  Message,
  'type' | 'userId' | 'previousId' | 'groupId' | 'event' | 'timestamp'
>

/** `call` is the message's stored body, parsed. Key order follows the tables. */
export const payloadOf = (message: Routed, call: JsonObject): JsonObject => {
  const timestamp = new Date(message.timestamp).toISOString()
  const user = message.userId === null ? {} : { userId: message.userId }
  const head = { version: payloadVersion, type: message.type }
  switch (message.type) {
    case 'identify':
      return { ...head, ...user, timestamp, traits: objectOf(call['traits']) }
    case 'track':
      return {
        ...head,
        ...user,
        timestamp,
        properties: objectOf(call['properties']),
        event: message.event ?? '',
      }
    case 'page':
      return { ...head, ...user, timestamp, properties: pageProperties(call) }
    case 'screen':
      return { ...head, ...user, timestamp, ...named(call), context: objectOf(call['context']) }
    case 'group':
      return {
        ...head,
        ...user,
        timestamp,
        traits: objectOf(call['traits']),
        groupId: message.groupId ?? '',
      }
    case 'alias':
      return {
        ...head,
        timestamp,
        'Previous ID': message.previousId ?? '',
        'User ID': message.userId ?? '',
      }
    case 'delete':
      return { type: message.type, ...user, timestamp }
  }
}

type Whole = Routed &
  Pick<Message, 'messageId' | 'anonymousId' | 'receivedAt' | 'originalTimestamp'>

/** Behind the fields of the tables, what these leave out. */
export const fullPayloadOf = (message: Whole, call: JsonObject): JsonObject => {
  const { type, messageId, anonymousId } = message
  return {
    ...payloadOf(message, call),
    messageId,
    ...(anonymousId === null ? {} : { anonymousId }),
    ...(type === 'page' ? named(call) : {}),
    ...(type === 'page' || type === 'screen' ? categorised(call) : {}),
    ...(type === 'screen' ? { properties: objectOf(call['properties']) } : {}),
    context: objectOf(call['context']),
    originalTimestamp: new Date(message.originalTimestamp).toISOString(),
    receivedAt: new Date(message.receivedAt).toISOString(),
  }
}

/** The very bytes that are stored, signed and sent: serialised once. */
export const render = (message: Routed, call: JsonObject): Buffer =>
  bytesOf(payloadOf(message, call))

export const renderFull = (message: Whole, call: JsonObject): Buffer =>
  bytesOf(fullPayloadOf(message, call))

const bytesOf = (payload: JsonObject): Buffer => Buffer.from(JSON.stringify(payload), 'utf8')

/** Whether a receiver that parses and re-serialises the body computes the signature we send. */
export const isFixedPoint = (bytes: Uint8Array): boolean => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  try {
    return JSON.stringify(JSON.parse(text)) === text && Buffer.byteLength(text) === bytes.length
  } catch {
    return false
  }
}

/** Browser SDKs put a page's name and category into its properties; calls without them get the same. */
export const pageProperties = (call: JsonObject): JsonObject => {
  const properties = objectOf(call['properties'])
  const missing = (['name', 'category'] as const).filter(
    (key) => typeof call[key] === 'string' && !Object.hasOwn(properties, key),
  )
  if (missing.length === 0) return properties
  return { ...properties, ...Object.fromEntries(missing.map((key) => [key, call[key] as string])) }
}

const named = (call: JsonObject): { readonly name?: string } =>
  typeof call['name'] === 'string' ? { name: call['name'] } : {}

const categorised = (call: JsonObject): { readonly category?: string } =>
  typeof call['category'] === 'string' ? { category: call['category'] } : {}

const objectOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})
