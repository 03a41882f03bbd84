// Opens the process's log: on Postgres by default, on Kafka where brokers are given.
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Message, Outbound } from './domain/message.ts'
import { openCodecs } from './log/avro.ts'
import { ensureTopics, kafkaAppender, kafkaSource } from './log/kafka.ts'
import type { Appender, Codec, Source } from './log/log.ts'
import { maintainPostgresLog, postgresAppender, postgresSource } from './log/postgres.ts'
import { openRegistry } from './log/registry.ts'
import type { Pool } from './postgres/sql.ts'
import type { Clock } from './running.ts'

export type Log = {
  readonly source: Source
  readonly appender: Appender
  /** Another one, so that live calls never queue behind imported ones. */
  readonly importAppender: Appender
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
  const url = config.schemaRegistryUrl
  const codecs = await openCodecs({
    registry: url === null ? undefined : openRegistry({ url }),
    prefix: config.kafkaPrefix,
  })
  const ends =
    config.kafkaBrokers === null ? onPostgres(deps) : await onKafka(deps, config.kafkaBrokers)
  return { ...ends, codecs }
}

const onPostgres = (deps: Deps): Omit<Log, 'codecs'> => {
  const { partitions, retentionDays, archive, archiveTopics } = deps.config
  const source = postgresSource({ ...deps, partitions })
  const appender = postgresAppender({ ...deps, partitions })
  const importAppender = postgresAppender({ ...deps, partitions })
  const maintenance = maintainPostgresLog({
    ...deps,
    retentionDays,
    archived: archive === null ? [] : archiveTopics,
  })
  const close = async () => {
    await maintenance.stop()
    await Promise.all([appender.close(), importAppender.close()])
    await source.close()
  }
  return { source, appender, importAppender, close }
}

const onKafka = async (
  { config, logger }: Deps,
  brokers: readonly string[],
): Promise<Omit<Log, 'codecs'>> => {
  const { partitions, kafkaPrefix: prefix } = config
  const connection = { brokers, logger, prefix }
  await ensureTopics({ ...connection, partitions })
  const source = kafkaSource(connection)
  const appender = kafkaAppender({ ...connection, partitions })
  const importAppender = kafkaAppender({ ...connection, partitions })
  const close = async () => {
    await Promise.all([appender.close(), importAppender.close()])
    await source.close()
  }
  return { source, appender, importAppender, close }
}
