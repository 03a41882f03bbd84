// The requests that the collect bench sends, and the record the bare handler makes of one call.
import { gzipSync } from 'node:zlib'
import { digestOf, type JsonObject, type Message } from '../src/domain/message.ts'

export const callsPerBatch = 100
const requests = 64

/** What clients do: batches or single calls, compressed or not. */
export const forms = {
  'batches plain': { path: '/v1/batch', calls: callsPerBatch, isGzip: false },
  'batches gzip': { path: '/v1/batch', calls: callsPerBatch, isGzip: true },
  'single plain': { path: '/v1/track', calls: 1, isGzip: false },
  'single gzip': { path: '/v1/track', calls: 1, isGzip: true },
} as const

export type Form = keyof typeof forms

/** Calls of about 600 bytes, as a server SDK sends them. */
export const aBatch = (seed: number, now: Date): string =>
  JSON.stringify({
    batch: Array.from({ length: callsPerBatch }, (_, at) => aCall(seed * callsPerBatch + at, now)),
    sentAt: now.toISOString(),
  })

/** As a browser sends it: with a `sentAt` of its own. */
export const aSingle = (seed: number, now: Date): string =>
  JSON.stringify({ ...aCall(seed, now), sentAt: now.toISOString() })

/** Whole requests, head and body. */
export const benchRequests = (form: Form, now: Date): readonly Buffer[] => {
  const { path, calls, isGzip } = forms[form]
  return Array.from({ length: requests }, (_, seed) => {
    const text = Buffer.from(calls === 1 ? aSingle(seed, now) : aBatch(seed, now))
    const body = isGzip ? gzipSync(text) : text
    const encoding = isGzip ? 'content-encoding: gzip\r\n' : ''
    const head = `POST ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Basic ${btoa('wk_bench:')}\r\ncontent-type: application/json\r\n${encoding}content-length: ${body.length}\r\n\r\n`
    return Buffer.concat([Buffer.from(head), body])
  })
}

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
    filtered: null,
  }
}
