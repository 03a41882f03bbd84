// Opens the process's log: on Postgres by default, on Kafka where brokers are given.
import type { Config } from './config.ts'
import type { Message, Outbound } from './domain/message.ts'
import { openCodecs } from './log/avro.ts'
import { ensureTopics, kafkaAppender, kafkaSource } from './log/kafka.ts'
import type { Appender, Codec, Source } from './log/log.ts'
import { postgresAppender, postgresSource } from './log/postgres.ts'
import type { Logger } from './logger.ts'
import type { Pool } from './postgres/sql.ts'
import type { Clock } from './running.ts'

export type Log = {
  readonly source: Source
  readonly appender: Appender
  readonly codecs: { readonly call: Codec<Message>; readonly outbound: Codec<Outbound> }
  close(): Promise<void>
}

type Deps = {
  readonly config: Config
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
}

export const openLog = async (deps: Deps): Promise<Log> => {
  const { config } = deps
  const codecs = await openCodecs(
    config.schemaRegistryUrl === null ? {} : { registry: config.schemaRegistryUrl },
  )
  const { source, appender } =
    config.kafkaBrokers === null
      ? await onPostgres(deps)
      : await onKafka(deps, config.kafkaBrokers)
  const close = async () => {
    await appender.close()
    await source.close()
  }
  return { source, appender, codecs, close }
}

const onKafka = async ({ config, logger }: Deps, brokers: readonly string[]) => {
  const connection = { brokers, logger, prefix: config.kafkaPrefix }
  await ensureTopics({ ...connection, partitions: config.partitions })
  return { source: kafkaSource(connection), appender: kafkaAppender({ ...connection, partitions: config.partitions }) }
}
