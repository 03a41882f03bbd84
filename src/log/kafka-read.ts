// Reading a Kafka partition without a group: plain fetches, one when the reader asks for more.
// kafkajs offers fetching only to members of a group, and a group takes seconds to form in production
// (group.initial.rebalance.delay.ms) and leaves itself behind. Its client fetches underneath, so this
// file reaches for that, in the one version we pin; the contract suite notices if it ever moves.
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KafkaMessage } from 'kafkajs'
import { Fault } from '../fault.ts'
import {
  type AdminCalls,
  type KafkaConnection,
  killableSockets,
  openClient,
  topicName,
  unavailable,
} from './kafka-client.ts'
import { boundsOf } from './kafka-topics.ts'
import type { Batch, Range } from './log.ts'

type FetchRequest = {
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly isolationLevel: number
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly fetchOffset: string
      readonly maxBytes: number
    }[]
  }[]
}
type FetchAnswer = { readonly responses: readonly { readonly partitions: readonly unknown[] }[] }
type Cluster = {
  connect(): Promise<void>
  disconnect(): Promise<void>
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>
  findLeaderForPartitions(topic: string, partitions: readonly number[]): Record<string, number[]>
  findBroker(node: { readonly nodeId: string }): Promise<{
    fetch(request: FetchRequest): Promise<FetchAnswer>
  }>
}
type ClusterOptions = { readonly allowAutoTopicCreation: boolean; readonly metadataMaxAge: number }
type FetchedBatch = {
  readonly messages: readonly KafkaMessage[]
  readonly rawMessages: readonly unknown[]
  lastOffset(): string
}
type FetchedBatchOf = new (topic: string, asked: string, partition: unknown) => FetchedBatch

const KafkaBatch = createRequire(import.meta.url)('kafkajs/src/consumer/batch') as FetchedBatchOf

const readCommitted = 1
const fetchBytesMax = 1_064_960
const fetchBytesMin = 16_384
/** More than most records have. */
const recordBytes = 2_048
const fetchWaitMs = 100
const readMs = 10_000
const timing = {
  connectionTimeout: 2_000,
  requestTimeout: 5_000,
  retry: { retries: 1, initialRetryTime: 100, maxRetryTime: 500, factor: 0.2, multiplier: 2 },
}

/**
 * For whoever wants a few records a broker need not send, nor this process decode, a thousand. It is a wish: of the first
 * record batch all is sent, and what is missing is asked for next.
 */
export const fetchBytesOf = (records: bigint): number =>
  Math.min(fetchBytesMax, Math.max(fetchBytesMin, Number(records) * recordBytes))

export type Fetching = {
  read(range: Range): AsyncIterable<Batch>
  close(): Promise<void>
}

export const openFetching = (connection: KafkaConnection, admin: AdminCalls): Fetching => {
  let current: Promise<Cluster> | null = null
  let closed = false
  const sockets = killableSockets()
  const connected = async () => {
    const cluster = openCluster(connection, sockets.make)
    await cluster.connect()
    return cluster
  }
  const discard = async (cluster: Promise<Cluster>) => {
    if (current === cluster) current = null
    await cluster.then((open) => open.disconnect()).catch(() => undefined)
  }
  /** `null` where the log does not have the offset. */
  const fetchAt = async (range: Range, next: bigint): Promise<FetchedBatch | null> => {
    const until = performance.now() + readMs
    for (;;) {
      if (closed) throw new Fault('log_closed', 'the log was closed')
      current ??= connected()
      const cluster = current
      try {
        return await fetchOnce(await cluster, {
          topic: topicName(connection, range.topic),
          partition: range.partition,
          offset: next.toString(),
          bytesMax: fetchBytesOf(range.until - range.from),
        })
      } catch (error) {
        if (error instanceof Error && error.name === 'KafkaJSOffsetOutOfRange') return null
        await discard(cluster)
        if (performance.now() > until) throw unavailable('Kafka lets nothing be read', error)
        await sleep(200)
      }
    }
  }
  return {
    read: async function* (range) {
      let next = range.from
      while (next < range.until) {
        const fetched = await fetchAt(range, next)
        if (fetched === null) {
          const start = (await boundsOf(admin, connection, range.topic))[range.partition]?.start
          if (start !== undefined && start > next) next = start
          else await sleep(fetchWaitMs)
        } else if (fetched.rawMessages.length > 0) {
          const batch = batchOf(fetched, next, range.until)
          next = batch.next
          yield batch
        }
      }
    },
    close: async () => {
      closed = true
      if (current !== null) await discard(current)
      sockets.kill()
    },
  }
}

const openCluster = (
  connection: KafkaConnection,
  socketFactory: ReturnType<typeof killableSockets>['make'],
): Cluster => {
  const client = openClient(connection, { ...timing, socketFactory })
  const found = Object.getOwnPropertySymbols(client).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )
  if (found === undefined) throw new Error('this kafkajs has no cluster to fetch through')
  const create = Reflect.get(client, found) as (options: ClusterOptions) => Cluster
  return create({ allowAutoTopicCreation: false, metadataMaxAge: 300_000 })
}

type Wanted = {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly bytesMax: number
}

const fetchOnce = async (cluster: Cluster, { topic, partition, offset, bytesMax }: Wanted) => {
  await cluster.addMultipleTargetTopics([topic])
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
  if (nodeId === undefined) throw new Error(`${topic}/${partition} has no leader`)
  const broker = await cluster.findBroker({ nodeId })
  const { responses } = await broker.fetch({
    maxWaitTime: fetchWaitMs,
    minBytes: 1,
    maxBytes: bytesMax,
    isolationLevel: readCommitted,
    topics: [{ topic, partitions: [{ partition, fetchOffset: offset, maxBytes: bytesMax }] }],
  })
  return new KafkaBatch(topic, offset, responses[0]?.partitions[0])
}

const batchOf = (fetched: FetchedBatch, from: bigint, until: bigint): Batch => {
  const next = BigInt(fetched.lastOffset()) + 1n
  const entries = fetched.messages
    .map(({ offset, key, value }) => ({
      offset: BigInt(offset),
      key: key === null ? '' : key.toString(),
      value: value ?? new Uint8Array(),
    }))
    .filter(({ offset }) => offset < until)
  return { from, next: next < until ? next : until, entries }
}
