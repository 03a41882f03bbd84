// Builders for configuration snapshots, and a Live whose snapshot a test replaces.
import type {
  Audience,
  Configuration,
  Destination,
  Live,
  Source,
} from '../../src/domain/configuration.ts'

export const aSource = (over: Partial<Source> = {}): Source => ({
  id: 1,
  workspaceId: 1,
  name: 'web',
  class: 'server',
  writeKey: 'wk_web',
  enabled: true,
  ...over,
})

export const aDestination = (over: Partial<Destination> = {}): Destination => ({
  id: 1,
  workspaceId: 1,
  name: 'Webhooks',
  type: 'webhook',
  enabled: true,
  sourceIds: new Set([1]),
  sharedSecret: 'secret',
  historical: true,
  historicalAfterMs: 86_400_000,
  webhooks: [{ url: 'http://127.0.0.1:9/hook', headers: {} }],
  ...over,
})

export const anAudience = (over: Partial<Audience> = {}): Audience => ({
  id: 1,
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
}

export const aConfiguration = (parts: Parts = {}, version = 1n): Configuration => {
  const { sources = [aSource()], destinations = [], audiences = [], regionalAccess = false } = parts
  return {
    version,
    workspaces: new Map([[1, { id: 1, name: 'shop', regionalAccess }]]),
    sources: new Map(sources.map((source) => [source.id, source])),
    sourceByWriteKey: new Map(sources.map((source) => [source.writeKey, source])),
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
