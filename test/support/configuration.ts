// Builders for configuration snapshots, and a Live whose snapshot a test replaces.
import { hash } from 'node:crypto'
import { keyringOf } from '../../src/control/secret.ts'
import {
  type Audience,
  type Configuration,
  type Destination,
  defaultDestinationSettings,
  defaultSourceSettings,
  defaultWebhook,
  type Live,
  type Source,
  type Webhook,
} from '../../src/domain/configuration.ts'

export const aSource = (over: Partial<Source> = {}): Source => ({
  id: 1,
  workspaceId: 1,
  name: 'web',
  class: 'server',
  writeKey: 'wk_web',
  // Of sk_web: SHA-256 in hex.
  secretKeyHash: hash('sha256', 'sk_web', 'hex'),
  enabled: true,
  settings: defaultSourceSettings,
  ...over,
})

/** What tests seal secrets with: 32 bytes in base64. */
export const aSecretKey = 'bWlsbHJhY2UtdGVzdHMtc2VhbC13aXRoLXRoaXMta2U='

export const aKeyring = keyringOf(aSecretKey, [])

export const aWebhook = (over: Partial<Webhook> = {}): Webhook => ({
  ...defaultWebhook,
  url: 'http://127.0.0.1:9/hook',
  ...over,
})

export const to = (...urls: readonly string[]): readonly Webhook[] =>
  urls.map((url) => aWebhook({ url }))

export const aDestination = (over: Partial<Destination> = {}): Destination => ({
  id: 1,
  workspaceId: 1,
  name: 'Webhooks',
  type: 'webhook',
  enabled: true,
  sourceIds: new Set([1]),
  ...defaultDestinationSettings,
  sharedSecret: 'secret',
  nextSharedSecret: null,
  historical: true,
  historicalAfterMs: 86_400_000,
  webhooks: [aWebhook()],
  filters: [],
  ...over,
})

export const anAudience = (over: Partial<Audience> = {}): Audience => ({
  id: 1,
  kind: 'audience',
  timezone: 'UTC',
  scope: 'user',
  includeAnonymous: true,
  retractOnDelete: false,
  entryEvents: false,
  workspaceId: 1,
  name: 'Big Spenders',
  key: 'big_spenders',
  condition: { event: { name: 'Order Completed' }, count: { op: 'gte', value: 1 } },
  destinationIds: [1],
  syncEveryMs: 9_000_000,
  ...over,
})

type Parts = {
  readonly sources?: readonly Source[]
  readonly destinations?: readonly Destination[]
  readonly audiences?: readonly Audience[]
  readonly regionalAccess?: boolean
  readonly grandfathered?: boolean
}

export const aConfiguration = (parts: Parts = {}, version = 1n): Configuration => {
  const { sources = [aSource()], destinations = [], audiences = [] } = parts
  const { regionalAccess = false, grandfathered = false } = parts
  return {
    version,
    workspaces: new Map([[1, { id: 1, name: 'shop', regionalAccess, grandfathered }]]),
    sources: new Map(sources.map((source) => [source.id, source])),
    sourceByWriteKey: new Map(sources.map((source) => [source.writeKey, source])),
    sourceBySecretKeyHash: new Map(sources.map((source) => [source.secretKeyHash, source])),
    destinations: new Map(destinations.map((destination) => [destination.id, destination])),
    destinationsBySource: new Map(
      sources.map(({ id }) => [id, destinations.filter(({ sourceIds }) => sourceIds.has(id))]),
    ),
    audiences: new Map(audiences.map((audience) => [audience.id, audience])),
  }
}

export type TestLive = Live & { replace(parts: Parts): void }

export const aLive = (parts: Parts = {}): TestLive => {
  let current = aConfiguration(parts)
  const listeners = new Set<(configuration: Configuration) => void>()
  return {
    now: () => current,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    replace: (next) => {
      current = aConfiguration(next, current.version + 1n)
      for (const listener of listeners) listener(current)
    },
  }
}
