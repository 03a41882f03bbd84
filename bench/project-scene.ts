// What the project benches work on: audiences as a process sees them, and calls of distinct users.
import type { Audience, Configuration, Live } from '../src/domain/configuration.ts'
import { digestOf, type JsonObject, logKey, type Message } from '../src/domain/message.ts'
import type { Codec, Entry } from '../src/log/log.ts'
import { partitionsOf } from '../src/log/partitions.ts'

export const partitions = partitionsOf(12)

export const liveOf = (all: readonly Audience[]): Live => {
  const configuration = configurationOf(all, 1n)
  return { now: () => configuration, onChange: () => () => undefined }
}

export const configurationOf = (all: readonly Audience[], version: bigint): Configuration => ({
  version,
  workspaces: new Map(),
  sources: new Map(),
  sourceByWriteKey: new Map(),
  sourceBySecretKeyHash: new Map(),
  destinations: new Map(),
  destinationsBySource: new Map(),
  audiences: new Map(all.map((audience) => [audience.id, audience])),
})

/** Steps through all users without repeating one before every other has had a call. */
export const stride = 7_919

export const propertiesOf = (number: number): JsonObject => ({
  price: 50 + (number % 100),
  currency: 'EUR',
  quantity: 1,
  cart: `cart-${number % 3}`,
  plan: number % 4 === 0 ? 'free' : 'gold',
  sku: `sku-${number % 977}`,
})

type Told = {
  readonly userId: string
  readonly event: string
  readonly at: number
  readonly properties: JsonObject
  readonly codec: Codec<Message>
}

/** A track call as the collector leaves it in the log. */
export const trackOf = (number: number, { event, properties, ...told }: Told): Entry =>
  entryOf(number, { ...told, event, content: { type: 'track', event, properties } })

type Identified = Omit<Told, 'event' | 'properties'> & { readonly traits: JsonObject }

export const identifyOf = (number: number, { traits, ...told }: Identified): Entry =>
  entryOf(number, { ...told, event: null, content: { type: 'identify', traits } })

type Content = Omit<Told, 'event' | 'properties'> & {
  readonly event: string | null
  readonly content: { readonly type: 'track' | 'identify' } & JsonObject
}

const entryOf = (number: number, { userId, event, at, content, codec }: Content): Entry => {
  // Ids ascend as the calls do.
  const messageId = `b-${String(number).padStart(12, '0')}`
  const who = { workspaceId: 1, sourceId: 1, messageId, userId, anonymousId: null }
  const timestamp = new Date(at).toISOString()
  const body = {
    ...content,
    ...{ messageId, userId },
    context: {
      library: { name: 'bench', version: '1.0.0' },
      locale: 'en-IE',
      page: { path: '/shop' },
    },
    integrations: {},
    timestamp,
    receivedAt: timestamp,
  }
  const message: Message = {
    ...who,
    digest: digestOf(who),
    type: content.type,
    previousId: null,
    groupId: null,
    event,
    timestamp: at,
    originalTimestamp: at,
    sentAt: at,
    receivedAt: at,
    body: Buffer.from(JSON.stringify(body)),
    filtered: null,
  }
  return { key: logKey(message), value: codec.encode(message) }
}

type Walk = {
  readonly users: number
  readonly now: number
  readonly names: readonly string[]
  readonly codec: Codec<Message>
}

export const callOf = (number: number, { users, now, names, codec }: Walk): Entry =>
  trackOf(number, {
    userId: `user-${((number * stride) % users) + 1}`,
    // In each round over the users each has another event.
    event: names[(number + Math.floor(number / users)) % names.length] as string,
    at: now,
    properties: propertiesOf(number),
    codec,
  })
