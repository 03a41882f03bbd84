// A process that joins a group on the Kafka log and says over IPC what it holds; to be killed.
import { kafkaSource } from '../../src/log/kafka.ts'
import { shortSession, testLogger } from './kafka-harness.ts'

const [brokers = '', prefix = '', group = ''] = process.argv.slice(2)
const connection = { brokers: brokers.split(','), prefix, logger: testLogger }
const source = kafkaSource({ ...connection, timing: shortSession })
const ends = await source.bounds('calls')
source.join({ name: group, topics: ['calls'], bytesMax: 1_000_000 }, async (lease) => {
  process.send?.({ held: lease.partition })
  return {
    from: lease.committed ?? (ends[lease.partition]?.end as bigint),
    handle: async (batch) => {
      for (const { key } of batch.entries) process.send?.({ handled: key })
      await lease.commit(batch.next)
    },
  }
})
