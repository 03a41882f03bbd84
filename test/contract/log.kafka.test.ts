// The log contract on a real Kafka broker, each opened pair behind a proxy of its own.
import { randomBytes } from 'node:crypto'
import { describe, inject } from 'vitest'
import { openKafkaHarness } from '../support/kafka-harness.ts'
import { logContract } from './log.contract.ts'

const brokers = inject('kafkaBrokers')?.split(',')

describe.skipIf(brokers === undefined)('with a broker', () => {
  logContract(
    'Kafka',
    () =>
      openKafkaHarness({ brokers: brokers ?? [], prefix: `t${randomBytes(4).toString('hex')}.` }),
    { moveMs: 90_000, appendsPerWriter: 30 },
  )
})
