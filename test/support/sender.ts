// Senders as published clients are: batches with ids of their own, sent again until they are answered 200.
import { setTimeout as sleep } from 'node:timers/promises'

export type SenderOptions = {
  /** Where the collector is now; it may have moved when a request failed. */
  readonly url: () => string
  readonly writeKey: string
  readonly workers: number
  readonly callsPerBatch: number
  /** Every how many batches one is sent again although it was answered, as if that answer had been lost. */
  readonly againEvery: number
}

export type Sender = {
  /** The numbers of calls that were answered 200. */
  readonly acknowledged: ReadonlySet<number>
  /** Answers by status; 0 counts requests that got none. */
  readonly statuses: ReadonlyMap<number, number>
  /** How long any request that was answered so took at most. */
  slowestMs(status: number): number
  /** No new batches; resolves when all that were begun are answered 200. */
  finish(): Promise<void>
}

const answerMsMax = 15_000
const pauseMs = 50

export const messageIdOf = (n: number): string => `crash-${n}`
export const userOf = (n: number): string => `u${n % 97}`

const aBatch = (from: number, count: number) =>
  JSON.stringify({
    batch: Array.from({ length: count }, (_, at) => ({
      type: 'track',
      messageId: messageIdOf(from + at),
      userId: userOf(from + at),
      event: 'Order Completed',
      properties: { n: from + at },
    })),
  })

export const startSender = (options: SenderOptions): Sender => {
  const { callsPerBatch, againEvery } = options
  const acknowledged = new Set<number>()
  const statuses = new Map<number, number>()
  const slowest = new Map<number, number>()
  let batches = 0
  let isFinishing = false
  const attempt = async (body: string, tries: number) => {
    const startedAt = performance.now()
    const status = await answerTo(options, body, tries)
    const tookMs = performance.now() - startedAt
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    slowest.set(status, Math.max(slowest.get(status) ?? 0, tookMs))
    return status
  }
  const deliver = async (body: string) => {
    for (let tries = 0; (await attempt(body, tries)) !== 200; tries += 1) await sleep(pauseMs)
  }
  const work = async () => {
    while (!isFinishing) {
      const batch = batches
      batches += 1
      const from = batch * callsPerBatch
      const body = aBatch(from, callsPerBatch)
      await deliver(body)
      for (let at = 0; at < callsPerBatch; at += 1) acknowledged.add(from + at)
      if (batch % againEvery === 0) await deliver(body)
    }
  }
  const done = Promise.all(Array.from({ length: options.workers }, work))
  return {
    acknowledged,
    statuses,
    slowestMs: (status) => slowest.get(status) ?? 0,
    finish: async () => {
      isFinishing = true
      await done
    },
  }
}

const answerTo = async ({ url, writeKey }: SenderOptions, body: string, tries: number) => {
  try {
    const response = await fetch(new URL('/v1/batch', url()), {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`${writeKey}:`)}`,
        'content-type': 'application/json',
        ...(tries > 0 ? { 'x-retry-count': String(tries) } : {}),
      },
      body,
      signal: AbortSignal.timeout(answerMsMax),
    })
    await response.arrayBuffer()
    return response.status
  } catch {
    return 0
  }
}
