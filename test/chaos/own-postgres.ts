// A Postgres server of a test's own: stopped and started again, or killed with -9, while others use it.
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type EmbeddedPostgres, startPostgres } from '../../src/postgres/embedded.ts'
import { knownCluster } from '../../src/postgres/embedded-place.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { openPool } from '../../src/postgres/pool.ts'
import type { Database } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'

export type OwnPostgres = Database & {
  /** SIGINT: connections are closed, what was committed is written, nobody is waited for. */
  stop(): Promise<void>
  /** As a machine that loses its power, but for its disks. */
  kill9(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export const openOwnPostgres = async (): Promise<OwnPostgres> => {
  const dataDir = await ownFolder('chaos')
  const launch = () => startPostgres({ dataDir, settings: { max_connections: '100' } })
  let server: EmbeddedPostgres | null = await launch()
  const { url } = server
  const pool = openPool({ url, connectionsMax: 10, name: 'test' })
  await migrate(pool)
  const stop = async () => {
    await server?.stop()
    server = null
  }
  return {
    url,
    pool,
    stop,
    kill9: async () => {
      const cluster = (await knownCluster(dataDir)) ?? join(dataDir, 'postgres')
      const [pid] = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')
      const ended = server?.done.catch(() => undefined)
      process.kill(Number(pid), 'SIGKILL')
      await ended
      server = null
    },
    start: async () => {
      server ??= await launch()
    },
    close: async () => {
      await pool.close()
      await stop()
      const cluster = await knownCluster(dataDir).catch(() => null)
      const paths = cluster === null ? [] : [cluster, `${cluster}.sockets`]
      for (const path of [...paths, dataDir]) await rm(path, { recursive: true, force: true })
    },
  }
}
