// The log that the deliver bench reads: Kafka where given, else Postgres, as the product runs.
import pino from 'pino'
import { parseConfig } from '../src/config.ts'
import { openPool } from '../src/postgres/pool.ts'

export const openDeliverLog = async () => {
  const { BENCH_DATABASE_URL: url = '', KAFKA_BROKERS: brokers } = process.env
  const { openLog } = await import('../src/open-log.ts')
  const config = parseConfig({
    MILLRACE_DATABASE_URL: url,
    ...(brokers
      ? { MILLRACE_KAFKA_BROKERS: brokers, MILLRACE_KAFKA_PREFIX: 'bench-deliver-' }
      : {}),
  })
  const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
  const logger = pino({ level: 'warn' })
  return { url, ...(await openLog({ config, pool, clock: () => new Date(), logger })) }
}
