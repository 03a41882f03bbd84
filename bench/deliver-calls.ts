// The calls that the deliver bench has in its log, and the destinations they go to.

import type { Configuration, Destination, Live, Source } from '../src/domain/configuration.ts'
import type { JsonObject, Message } from '../src/domain/message.ts'
import { aBatch, bareMessage, callsPerBatch } from './collect-calls.ts'

export const secret = 'a shared secret of usual length'

/** Message ids differ over the whole bench, so that nothing is a duplicate. */
export const callsFrom = (from: number, length: number, destinations: number): Message[] => {
  const now = new Date()
  const calls: Message[] = []
  for (let seed = from; calls.length < length; seed += 1) {
    const { batch, sentAt } = JSON.parse(aBatch(seed, now)) as {
      batch: JsonObject[]
      sentAt: string
    }
    for (const call of batch) calls.push(bareMessage(call, sentAt, now.getTime()))
  }
  return calls.map((call, at) => ({ ...call, sourceId: 1 + (at % destinations) }))
}

export { callsPerBatch }

/** One source for each destination, so that every call is posted once. */
export const liveFor = (urls: readonly string[]): Live => {
  const sources = urls.map((_url, at): Source => {
    const id = at + 1
    return {
      id,
      workspaceId: 1,
      name: `${id}`,
      class: 'server',
      writeKey: `wk_${id}`,
      enabled: true,
    }
  })
  const destinations = urls.map(
    (url, at): Destination => ({
      id: at + 1,
      workspaceId: 1,
      name: `Destination ${at + 1}`,
      type: 'webhook',
      enabled: true,
      sourceIds: new Set([at + 1]),
      sharedSecret: secret,
      historical: true,
      historicalAfterMs: 86_400_000,
      webhooks: [{ url, headers: {} }],
    }),
  )
  const configuration: Configuration = {
    version: 1n,
    workspaces: new Map([[1, { id: 1, name: 'bench', regionalAccess: false }]]),
    sources: new Map(sources.map((source) => [source.id, source])),
    sourceByWriteKey: new Map(sources.map((source) => [source.writeKey, source])),
    destinations: new Map(destinations.map((destination) => [destination.id, destination])),
    destinationsBySource: new Map(
      destinations.map((destination) => [destination.id, [destination]]),
    ),
    audiences: new Map(),
  }
  return { now: () => configuration, onChange: () => () => undefined }
}
