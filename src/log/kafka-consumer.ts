// The kafkajs consumer behind a membership: its settings, its calls made safe, its batches read.
import type { Consumer, EachBatchPayload, ISocketFactory } from 'kafkajs'
import { type KafkaConnection, openClient, topicName } from './kafka-client.ts'
import type { Committing } from './kafka-commit.ts'
import type { Fetched } from './kafka-slot.ts'
import type { Group, Place } from './log.ts'

export type GroupTiming = {
  /** How long a silent member keeps its partitions. */
  readonly sessionMs: number
  readonly heartbeatMs: number
}

export const groupTiming: GroupTiming = { sessionMs: 10_000, heartbeatMs: 1_000 }

/** How long a fetch waits for data, and with it every partition resumed meanwhile. */
const fetchWaitMs = 250
/** More than a broker's largest record batch, so that one always comes whole. */
const partitionFetchBytes = 1_064_960
const fetchBytesMin = 65_536

type Opening = {
  readonly connection: KafkaConnection
  readonly group: Group
  readonly timing: GroupTiming
  readonly socketFactory: ISocketFactory
  stopping(): boolean
}

export const openConsumer = (opening: Opening): Consumer => {
  const { connection, group, timing, socketFactory } = opening
  const retry = { retries: 5, initialRetryTime: 100, maxRetryTime: 2_000 }
  const requests = { connectionTimeout: 2_000, requestTimeout: 10_000, retry, socketFactory }
  return openClient(connection, requests).consumer({
    groupId: `${connection.prefix ?? ''}${group.name}`,
    sessionTimeout: timing.sessionMs,
    heartbeatInterval: timing.heartbeatMs,
    rebalanceTimeout: timing.sessionMs,
    maxWaitTimeInMs: fetchWaitMs,
    maxBytesPerPartition: partitionFetchBytes,
    // A quarter of the bound for what is on its way, from up to three brokers at once.
    maxBytes: Math.max(fetchBytesMin, Math.floor(group.bytesMax / 12)),
    allowAutoTopicCreation: false,
    retry: { ...retry, restartOnFailure: async () => !opening.stopping() },
  })
}

type Running = {
  readonly topics: readonly string[]
  eachBatch(payload: EachBatchPayload): Promise<void>
}

export const runConsumer = async (consumer: Consumer, { topics, eachBatch }: Running) => {
  await consumer.connect()
  // Otherwise an offset out of range jumps to the latest: a silent loss. From the oldest it is seen.
  await consumer.subscribe({ topics: [...topics], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch })
}

/** `fetchedOffset` is in every batch of kafkajs 2, though its types do not tell. */
type Asked = { readonly fetchedOffset?: string }

export const fetchedOf = ({ batch }: EachBatchPayload): Fetched => {
  const { fetchedOffset = batch.firstOffset() } = batch as Asked & EachBatchPayload['batch']
  const asked = BigInt(fetchedOffset ?? 0)
  const entries = batch.messages.map(({ offset, key, value }) => ({
    offset: BigInt(offset),
    key: key === null ? '' : key.toString(),
    value: value ?? new Uint8Array(),
  }))
  return { asked, batch: { from: asked, next: BigInt(batch.lastOffset()) + 1n, entries } }
}

export const flowOf = (consumer: Consumer, connection: KafkaConnection) => ({
  pause: ({ topic, partition }: Place) =>
    whileRunning(() =>
      consumer.pause([{ topic: topicName(connection, topic), partitions: [partition] }]),
    ),
  resume: ({ topic, partition }: Place, offset: bigint) =>
    whileRunning(() => {
      const name = topicName(connection, topic)
      consumer.seek({ topic: name, partition, offset: offset.toString() })
      consumer.resume([{ topic: name, partitions: [partition] }])
    }),
})

/** Between a crash and its restart kafkajs throws here; the assignment is then lost anyway. */
const whileRunning = (calls: () => void) => {
  try {
    calls()
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('consumer#run')) throw error
  }
}

/**
 * Sends commits. kafkajs's own `commitOffsets` has two traps: on a consumer that is not running it
 * resolves and does nothing, and it tries again across rebalances, by then for somebody else's
 * partitions. The way that each batch brings along does neither; the first is seen by its event.
 */
export const openCommitting = (consumer: Consumer, connection: KafkaConnection) => {
  let direct: EachBatchPayload['commitOffsetsIfNecessary'] | null = null
  let taken = 0
  consumer.on('consumer.commit_offsets', () => {
    taken++
  })
  consumer.on('consumer.crash', () => {
    direct = null
  })
  return {
    through: (payload: EachBatchPayload) => {
      direct = payload.commitOffsetsIfNecessary
    },
    send: async (latest: readonly Committing[]) => {
      const before = taken
      const offsets = latest.map(({ topic, partition, next }) => ({
        topic: topicName(connection, topic),
        partition,
        offset: next.toString(),
      }))
      if (direct === null) await consumer.commitOffsets(offsets)
      else
        await direct({
          topics: [...Map.groupBy(offsets, ({ topic }) => topic)].map(([topic, partitions]) => ({
            topic,
            partitions,
          })),
        })
      if (taken === before) throw new Error('the consumer was not running')
    },
  }
}
