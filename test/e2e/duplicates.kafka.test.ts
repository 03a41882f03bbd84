// Duplicates across rebalances and kill -9 on Kafka: two whole processes in one group.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, inject, test } from 'vitest'
import { kafkaSource } from '../../src/log/kafka.ts'
import { cloneDatabase } from '../support/database.ts'
import { directAdmin, topicsOf } from '../support/kafka-harness.ts'
import { openScene, retryAcrossRebalances } from './duplicates-scene.ts'

const brokers = inject('kafkaBrokers')?.split(',') ?? []

describe.skipIf(brokers.length === 0)('on Kafka', async () => {
  const { pool, url } = await cloneDatabase()

  test('what was taken stays refused when its partitions move to another process, and when that one is all there is', async () => {
    const prefix = `dup${randomBytes(4).toString('hex')}.`
    const source = kafkaSource({ brokers, prefix, logger: pino({ level: 'silent' }) })
    const ends = async () => (await source.bounds('calls')).map(({ end }) => end)
    const env = { MILLRACE_KAFKA_PREFIX: prefix }
    const scene = await openScene({ databaseUrl: url, kafkaBrokers: brokers, env, pool, ends })
    try {
      await retryAcrossRebalances(scene)
    } finally {
      await scene.close()
      await source.close()
      const admin = directAdmin(brokers)
      await admin.connect()
      await admin.deleteTopics({ topics: topicsOf(prefix) })
      await admin.disconnect()
    }
  }, 1_200_000)
})
