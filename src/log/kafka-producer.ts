// One disposable Kafka producer: it sends one request at a time, and once it failed it is dead for good.
import { CompressionTypes, type Message, type Producer } from 'kafkajs'
import { Fault } from '../fault.ts'
import { type KafkaConnection, killableSockets, openClient, unavailable } from './kafka-client.ts'
import { placeOf } from './log.ts'

export type Sending = {
  readonly topic: string
  readonly partition: number
  readonly key: string
  readonly value: Uint8Array
}

export type DisposableProducer = {
  /** The first offset of each partition's part, by `topic/partition`. */
  send(messages: readonly Sending[]): Promise<ReadonlyMap<string, bigint>>
  /** Cuts its connections at once and makes no more. */
  discard(): void
}

/** Short of the 5 s within which an append answers, so that one broken connection can be made anew. */
const timing = {
  connectionTimeout: 1_500,
  requestTimeout: 3_000,
  retry: { retries: 6, initialRetryTime: 50, maxRetryTime: 800, factor: 0.2, multiplier: 2 },
}

export const openProducer = async (connection: KafkaConnection): Promise<DisposableProducer> => {
  const sockets = killableSockets()
  const producer = openClient(connection, { ...timing, socketFactory: sockets.make }).producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    createPartitioner: () => partitionGiven,
  })
  try {
    await producer.connect()
  } catch (error) {
    sockets.kill()
    throw unavailable('Kafka gives no producer id', error)
  }
  return { send: (messages) => send(producer, messages), discard: sockets.kill }
}

const partitionGiven = ({ message }: { readonly message: Message }) => {
  if (message.partition === undefined) throw new Error('a message without its partition')
  return message.partition
}

const send = async (producer: Producer, messages: readonly Sending[]) => {
  const byTopic = Map.groupBy(messages, ({ topic }) => topic)
  const answers = await producer.sendBatch({
    acks: -1,
    timeout: timing.requestTimeout,
    compression: CompressionTypes.None,
    topicMessages: [...byTopic].map(([topic, parts]) => ({
      topic,
      messages: parts.map(({ key, value, partition }) => ({
        key,
        value: value as Buffer,
        partition,
      })),
    })),
  })
  const first = new Map<string, bigint>()
  for (const { topicName, partition, baseOffset } of answers)
    if (baseOffset !== undefined)
      first.set(placeOf({ topic: topicName, partition }), BigInt(baseOffset))
  // When a leader moves between its retries, kafkajs skips a partition and still resolves.
  for (const place of messages.map(placeOf))
    if ((first.get(place) ?? -1n) < 0n)
      throw new Fault('log_unavailable', `no answer for ${place}`, { retriable: true })
  return first
}
