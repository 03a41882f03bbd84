// Opens the one database of a process, embedded or by URL, and brings its tables up to date.
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { Fault } from './fault.ts'
import { type EmbeddedPostgres, findPostgres, startPostgres } from './postgres/embedded.ts'
import { migrate } from './postgres/migrate.ts'
import { openPool } from './postgres/pool.ts'
import type { Pool } from './postgres/sql.ts'

export type Database = {
  readonly pool: Pool
  readonly url: string
  /** Another pool on it, whose sessions have these server settings. */
  openPool(settings: Readonly<Record<string, string>>, connectionsMax: number): Pool
  /** Rejects when the embedded server ends by itself; never settles for a database by URL. */
  readonly done: Promise<void>
  /** Closes the pool, then the embedded server if this process started it. */
  stop(): Promise<void>
}

type Options = {
  readonly config: Config
  readonly logger: Logger
  /** Use the embedded server of a running Millrace instead of refusing to start beside it. */
  readonly shared: boolean
}

export const openDatabase = async ({ config, logger, shared }: Options): Promise<Database> => {
  const server = await serverOf(config, shared)
  let stopping = false
  const also = (settings: Readonly<Record<string, string>>, connectionsMax: number): Pool =>
    openPool({
      url: server.url,
      connectionsMax,
      name: 'millrace',
      onError: (error) => {
        if (!stopping) logger.warn({ err: error }, 'connection.lost')
      },
      settings,
    })
  const pool = also({}, config.databaseConnections)
  const stop = async () => {
    stopping = true
    await pool.close()
    await server.stop()
  }
  try {
    const applied = await migrate(pool)
    if (applied.length > 0) logger.info({ applied }, 'database.migrated')
    return { pool, url: server.url, openPool: also, done: server.done, stop }
  } catch (error) {
    await stop()
    throw unreachable(error, config)
  }
}

const serverOf = async (config: Config, shared: boolean): Promise<EmbeddedPostgres> => {
  if (config.databaseUrl !== null) return elsewhere(config.databaseUrl)
  const running = shared ? await findPostgres(config.dataDir) : null
  return running === null ? startPostgres({ dataDir: config.dataDir }) : elsewhere(running)
}

const elsewhere = (url: string): EmbeddedPostgres => ({
  url,
  done: new Promise(() => undefined),
  stop: async () => undefined,
})

/** The driver's connection errors say neither which database nor what to do. */
const unreachable = (error: unknown, config: Config) => {
  if (error instanceof Fault || config.databaseUrl === null) return error
  const { message, code } = error as { message: string; code?: string }
  return new Fault(
    'database_unreachable',
    `no connection to the database of MILLRACE_DATABASE_URL (${message || code}): check that it runs, and user, password and database name`,
    { cause: error, retriable: true },
  )
}
