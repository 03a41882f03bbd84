// The Kafka adapter as the log contract opens it: pairs behind proxies, holes, truncation, death.
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { type Logger, pino } from 'pino'
import { type AppendLimits, ensureTopics, kafkaAppender, kafkaSource } from '../../src/log/kafka.ts'
import type { GroupTiming } from '../../src/log/kafka-consumer.ts'
import type { LogHarness, Opened } from '../contract/log.harness.ts'
import { type KafkaProxy, openKafkaProxy } from './kafka-proxy.ts'

type Options = { readonly brokers: readonly string[]; readonly prefix: string }

/** Set to see what the adapter and kafkajs say. */
export const testLogger = pino({ level: process.env['MILLRACE_TEST_LOG'] ?? 'silent' })

export const partitions = 12
/** Short, so that the tests see a session expire; a broker of a team's own may refuse it. */
export const shortSession = { sessionMs: 6_000, heartbeatMs: 300 }
/** Where none is to expire: not on a machine that hangs for seconds either. */
export const longSession = { sessionMs: 30_000, heartbeatMs: 300 }

export type Pair = Opened & { readonly proxy: KafkaProxy; close(): Promise<void> }

type PairOptions = Options & {
  readonly timing?: GroupTiming
  readonly limits?: Partial<AppendLimits>
  readonly logger?: Logger
}

/** What one process would open, behind a proxy of its own. */
export const openPair = async ({ brokers, prefix, ...options }: PairOptions): Promise<Pair> => {
  const proxy = await openKafkaProxy(brokers)
  const connection = { brokers: proxy.brokers, prefix, logger: options.logger ?? testLogger }
  const appender = kafkaAppender({ ...connection, partitions, limits: options.limits ?? {} })
  const source = kafkaSource({ ...connection, timing: options.timing ?? longSession })
  return {
    appender,
    source,
    proxy,
    close: async () => {
      await source.close()
      await appender.close()
      await proxy.close()
    },
  }
}

export const topicsOf = (prefix: string) =>
  (['calls', 'calls.import', 'outbound', 'outbound.replay'] as const).map((topic) => prefix + topic)

export const openKafkaHarness = async ({ brokers, prefix }: Options): Promise<LogHarness> => {
  await ensureTopics({ brokers, prefix, logger: testLogger, partitions })
  const pairs = new Map<Opened, Pair>()
  const admin = directAdmin(brokers)
  await admin.connect()
  const open = async (random?: () => number, timing?: GroupTiming) => {
    const pair = await openPair({ brokers, prefix, ...(timing ? { timing } : {}) })
    if (random) pair.proxy.loseAnswers(() => random() < 0.05)
    pairs.set(pair, pair)
    return pair
  }
  return {
    open: () => open(),
    openMortal: () => open(undefined, shortSession),
    openDisturbed: (random) => open(random),
    cut: async (opened) => pairs.get(opened)?.proxy.cut(),
    crash: async (opened) => pairs.get(opened)?.proxy.cut(),
    hole: ({ topic, partition }) => leaveHole({ brokers, topic: prefix + topic, partition }),
    truncate: ({ topic, partition, before }) =>
      truncate(admin, { topic: prefix + topic, partition, before }),
    close: async () => {
      for (const pair of pairs.values()) await pair.close()
      await admin.deleteTopics({ topics: topicsOf(prefix) })
      await admin.disconnect()
    },
  }
}

type Cut = { readonly topic: string; readonly partition: number; readonly before: bigint }

export const truncate = async (admin: Admin, { topic, partition, before }: Cut) => {
  // Finding the leader needs metadata, which an admin has only once it asked for it.
  await admin.fetchTopicMetadata({ topics: [topic] })
  await admin.deleteTopicRecords({
    topic,
    partitions: [{ partition, offset: before.toString() }],
  })
}

export const directAdmin = (brokers: readonly string[]) =>
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
