// The topics themselves on Kafka: created at start, and asked for their bounds.
import type { Admin } from 'kafkajs'
import { Fault } from '../fault.ts'
import { type AdminCalls, type KafkaConnection, openAdmin, topicName } from './kafka-client.ts'
import type { Topic } from './log.ts'

const allTopics: readonly Topic[] = ['calls', 'calls.import', 'outbound', 'outbound.replay']

type Ensuring = KafkaConnection & {
  /** Partitions of each topic. */
  readonly partitions: number
}

/**
 * Creates the topics that are missing, and refuses a partition count other than the configured one:
 * with another count a visitor's calls would go to another partition from one moment to the next.
 */
export const ensureTopics = async (connection: Ensuring): Promise<void> => {
  const admin = openAdmin(connection)
  try {
    for (const topic of allTopics) await admin.run((calls) => create(calls, connection, topic))
    for (const topic of allTopics) await checkCount(admin, connection, topic)
  } finally {
    await admin.close()
  }
}

const create = (admin: Admin, connection: Ensuring, topic: Topic) =>
  admin.createTopics({
    topics: [
      {
        topic: topicName(connection, topic),
        numPartitions: connection.partitions,
        replicationFactor: -1,
        // The broker's clock stamps: it does not run backwards within a partition as producers' do.
        configEntries: [{ name: 'message.timestamp.type', value: 'LogAppendTime' }],
      },
    ],
  })

const checkCount = async (admin: AdminCalls, connection: Ensuring, topic: Topic) => {
  const found = (await boundsOf(admin, connection, topic)).length
  if (found === connection.partitions) return
  throw new Fault(
    'config_invalid',
    `topic ${topicName(connection, topic)} has ${found} partitions, but ${connection.partitions} are ` +
      `configured: set MILLRACE_PARTITIONS=${found}, or create the topic anew`,
  )
}

export type Bounds = { readonly start: bigint; readonly end: bigint }

export const boundsOf = (
  admin: AdminCalls,
  connection: KafkaConnection,
  topic: Topic,
): Promise<readonly Bounds[]> =>
  admin.run(async (calls) => {
    const offsets = await calls.fetchTopicOffsets(topicName(connection, topic))
    return byPartition(offsets).map(({ low, high }) => ({ start: BigInt(low), end: BigInt(high) }))
  })

export const offsetsAtOf = (
  admin: AdminCalls,
  connection: KafkaConnection,
  { topic, at }: { readonly topic: Topic; readonly at: Date },
): Promise<readonly bigint[]> =>
  admin.run(async (calls) => {
    const name = topicName(connection, topic)
    const offsets = await calls.fetchTopicOffsetsByTimestamp(name, at.getTime())
    return byPartition(offsets).map(({ offset }) => BigInt(offset))
  })

/** The group's committed offsets by partition; `null` where it never committed. */
export const committedOf = (
  admin: AdminCalls,
  group: string,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly (bigint | null)[]>> =>
  admin.run(async (calls) => {
    // Finding the group's coordinator needs metadata, which a fresh admin does not have.
    await calls.fetchTopicMetadata({ topics: [...topics] })
    const found = await calls.fetchOffsets({ groupId: group, topics: [...topics] })
    return new Map(
      found.map(({ topic, partitions }) => [
        topic,
        byPartition(partitions).map(({ offset }) =>
          offset.startsWith('-') ? null : BigInt(offset),
        ),
      ]),
    )
  })

const byPartition = <T extends { readonly partition: number }>(found: readonly T[]): readonly T[] =>
  [...found].sort((one, other) => one.partition - other.partition)
