// The calls that the deliver bench has in its log, and the destinations they go to.

import {
  type Destination,
  defaultDestinationSettings,
  defaultWebhook,
  type Live,
  type Source,
} from '../src/domain/configuration.ts'
import type { JsonObject, Message } from '../src/domain/message.ts'
import { aConfiguration, aSource } from '../test/support/configuration.ts'
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
    return aSource({ id, name: `${id}`, writeKey: `wk_${id}` })
  })
  const destinations = urls.map(
    (url, at): Destination => ({
      id: at + 1,
      workspaceId: 1,
      name: `Destination ${at + 1}`,
      type: 'webhook',
      enabled: true,
      sourceIds: new Set([at + 1]),
      ...defaultDestinationSettings,
      sharedSecret: secret,
      nextSharedSecret: null,
      historical: true,
      historicalAfterMs: 86_400_000,
      webhooks: [{ ...defaultWebhook, url }],
      filters: [],
    }),
  )
  const configuration = aConfiguration({ sources, destinations })
  return { now: () => configuration, onChange: () => () => undefined }
}
