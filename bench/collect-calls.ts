// The batches that the collect bench sends, and the record the bare handler makes of one call.
import { digestOf, type JsonObject, type Message } from '../src/domain/message.ts'

export const callsPerBatch = 100
const batches = 64

/** Calls of about 600 bytes, as a server SDK sends them. */
export const aBatch = (seed: number, now: Date): string =>
  JSON.stringify({
    batch: Array.from({ length: callsPerBatch }, (_, at) => aCall(seed * callsPerBatch + at, now)),
    sentAt: now.toISOString(),
  })

export const benchBatches = (now: Date): readonly string[] =>
  Array.from({ length: batches }, (_, seed) => aBatch(seed, now))

const aCall = (id: number, now: Date) => ({
  messageId: `node-next-1760000000000-${id.toString(16).padStart(32, '0')}`,
  type: 'track',
  userId: `user-${id % 5_000}`,
  anonymousId: `5f1e8a3c-0d6b-4f0e-9a1d-${id.toString(16).padStart(12, '0')}`,
  event: 'Order Completed',
  timestamp: now.toISOString(),
  properties: {
    orderId: `50314b8e9bcf0000${id}`,
    total: 27.5 + (id % 90),
    currency: 'USD',
    coupon: 'hasbros',
    products: [
      { productId: '507f1f77bcf86cd799439011', sku: '45790-32', name: 'Monopoly', quantity: 1 },
      { productId: '505bd76785ebb509fc183733', sku: '46493-32', name: 'Uno Card', quantity: 2 },
    ],
  },
  context: {
    library: { name: '@segment/analytics-node', version: '3.1.0' },
    locale: 'en-US',
    timezone: 'Europe/Amsterdam',
  },
  integrations: {},
  _metadata: { nodeVersion: '24.21.0', jsRuntime: 'node' },
})

/**
 * What a handler that trusts every call would append: the same bytes as the product's (checked before
 * measuring), without judging, cleaning, authenticating, bounding or counting anything.
 */
export const bareMessage = (call: JsonObject, sentAt: string, receivedAt: number): Message => {
  const at = new Date(receivedAt).toISOString()
  const { messageId, timestamp } = call as { messageId: string; timestamp: string }
  const body = { ...call, originalTimestamp: timestamp, sentAt, receivedAt: at }
  return {
    messageId,
    digest: digestOf({ workspaceId: 1, sourceId: 1, messageId }),
    type: call['type'] as Message['type'],
    workspaceId: 1,
    sourceId: 1,
    userId: call['userId'] as string,
    anonymousId: call['anonymousId'] as string,
    previousId: null,
    groupId: null,
    event: call['event'] as string,
    timestamp: Date.parse(timestamp),
    originalTimestamp: Date.parse(timestamp),
    sentAt: Date.parse(sentAt),
    receivedAt,
    body: Buffer.from(JSON.stringify(body)),
  }
}
