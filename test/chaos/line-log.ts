// The log of a line: on the test's own Postgres, or on a real broker, under a name of its own.
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { ensureTopics, kafkaAppender, kafkaSource } from '../../src/log/kafka.ts'
import { openAdmin } from '../../src/log/kafka-client.ts'
import { committedOf } from '../../src/log/kafka-topics.ts'
import type { Appender, Source } from '../../src/log/log.ts'
import { postgresAppender, postgresSource } from '../../src/log/postgres.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { LogChoice } from './failpoint.ts'

export type LineLog = {
  /** For the deliver process. */
  readonly choice: LogChoice
  readonly appender: Appender
  readonly source: Source
  /** What the group of delivery has committed for `calls`, by partition; `null`: nothing. */
  committed(): Promise<readonly (bigint | null)[]>
  close(): Promise<void>
}

const logger = pino({ level: 'silent' })

export const postgresLog = (pool: Pool): LineLog => {
  const appender = postgresAppender({ pool, clock: () => new Date() })
  const source = postgresSource({ pool, logger })
  return {
    choice: { type: 'postgres', movesSoon: true },
    appender,
    source,
    committed: async () => [],
    close: async () => {
      await appender.close()
      await source.close()
    },
  }
}

type Kafka = {
  readonly brokers: readonly string[]
  readonly partitions: number
  /** Of the deliver processes. */
  readonly sessionMs: number
}

export const kafkaLog = async ({ brokers, partitions, sessionMs }: Kafka): Promise<LineLog> => {
  const prefix = `chaos-${randomBytes(4).toString('hex')}-`
  const connection = { brokers, prefix, logger }
  await ensureTopics({ ...connection, partitions })
  const appender = kafkaAppender({ ...connection, partitions })
  const source = kafkaSource(connection)
  const admin = openAdmin(connection)
  return {
    choice: { type: 'kafka', brokers, prefix, sessionMs },
    appender,
    source,
    committed: async () => {
      const name = `${prefix}calls`
      return (await committedOf(admin, `${prefix}deliver`, [name])).get(name) ?? []
    },
    close: async () => {
      await appender.close()
      await source.close()
      await admin.close()
    },
  }
}
