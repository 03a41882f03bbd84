// The Kafka adapter as the log contract opens it: pairs behind proxies, holes, truncation, death.
import { Kafka, logLevel } from 'kafkajs'
import { pino } from 'pino'
import { ensureTopics, kafkaAppender, kafkaSource } from '../../src/log/kafka.ts'
import type { Topic } from '../../src/log/log.ts'
import type { LogHarness, Opened } from '../contract/log.harness.ts'
import { type KafkaProxy, openKafkaProxy } from './kafka-proxy.ts'

type Options = { readonly brokers: readonly string[]; readonly prefix: string }

/** Set to see what the adapter and kafkajs say. */
export const testLogger = pino({ level: process.env['MILLRACE_TEST_LOG'] ?? 'silent' })

export const partitions = 12
/** Short, so that the tests see a session expire; a broker of a team's own may refuse it. */
export const shortSession = { sessionMs: 6_000, heartbeatMs: 300 }

export const openKafkaHarness = async ({ brokers, prefix }: Options): Promise<LogHarness> => {
  const logger = testLogger
  await ensureTopics({ brokers, prefix, logger, partitions })
  const proxies = new Map<Opened, KafkaProxy>()
  const admin = directAdmin(brokers)
  await admin.connect()
  const open = async (random?: () => number) => {
    const proxy = await openKafkaProxy(brokers)
    if (random) proxy.loseAnswers(() => random() < 0.05)
    const connection = { brokers: proxy.brokers, prefix, logger }
    const opened = {
      appender: kafkaAppender({ ...connection, partitions }),
      source: kafkaSource({ ...connection, timing: shortSession }),
    }
    proxies.set(opened, proxy)
    return opened
  }
  return {
    open: () => open(),
    openDisturbed: open,
    cut: async (opened) => proxies.get(opened)?.cut(),
    crash: async (opened) => proxies.get(opened)?.cut(),
    hole: ({ topic, partition }) => leaveHole({ brokers, topic: prefix + topic, partition }),
    truncate: async ({ topic, partition, before }) => {
      // Finding the leader needs metadata, which an admin has only once it asked for it.
      await admin.fetchTopicMetadata({ topics: [prefix + topic] })
      await admin.deleteTopicRecords({
        topic: prefix + topic,
        partitions: [{ partition, offset: before.toString() }],
      })
    },
    close: async () => {
      for (const [opened, proxy] of proxies) {
        await opened.source.close()
        await opened.appender.close()
        await proxy.close()
      }
      await admin.deleteTopics({
        topics: (['calls', 'calls.import', 'outbound'] as Topic[]).map((topic) => prefix + topic),
      })
      await admin.disconnect()
    },
  }
}

const directAdmin = (brokers: readonly string[]) =>
  new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()

type Place = {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly partition: number
}

/** A foreign producer's committed transaction of nothing visible: its marker takes an offset. */
const leaveHole = async ({ brokers, topic, partition }: Place) => {
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer({
    idempotent: true,
    maxInFlightRequests: 1,
    transactionalId: `hole-${topic}-${partition}-${Date.now()}`,
    createPartitioner: () => () => partition,
  })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: [{ key: 'hole', value: 'never seen', partition }] })
  await transaction.abort()
  await producer.disconnect()
}
