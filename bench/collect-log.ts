// The log that both contenders of the collect bench append to: Kafka where given, else Postgres.
import pino from 'pino'
import { parseConfig } from '../src/config.ts'
import type { Appender } from '../src/log/log.ts'
import { openPool } from '../src/postgres/pool.ts'
import type { Pool } from '../src/postgres/sql.ts'

/** Calls on the topic, over all partitions. */
export type BenchLog = { readonly appender: Appender; readonly pool: Pool; ends(): Promise<number> }

/** `BENCH_LOG=none` appends to nothing, so that a profile shows the stage alone. */
export const openBenchLog = async (): Promise<BenchLog> => {
  const { BENCH_LOG: kind, BENCH_DATABASE_URL: url = '', KAFKA_BROKERS: brokers } = process.env
  const pool = openPool({ url, connectionsMax: 8, name: 'bench' })
  if (kind === 'none') return nothing(pool)
  const { openLog } = await import('../src/open-log.ts')
  const config = parseConfig({
    MILLRACE_DATABASE_URL: url,
    ...(brokers
      ? { MILLRACE_KAFKA_BROKERS: brokers, MILLRACE_KAFKA_PREFIX: 'bench-collect-' }
      : {}),
  })
  const logger = pino({ level: 'warn' })
  const { appender, source } = await openLog({ config, pool, clock: () => new Date(), logger })
  return {
    appender,
    pool,
    ends: async () => {
      const bounds = await source.bounds('calls')
      return bounds.reduce((sum, { end }) => sum + Number(end), 0)
    },
  }
}

const nothing = (pool: Pool): BenchLog => ({
  pool,
  appender: {
    append: async (_topic, entries) => entries.map(() => ({ partition: 0, offset: 0n })),
    close: async () => undefined,
  },
  ends: async () => 0,
})
