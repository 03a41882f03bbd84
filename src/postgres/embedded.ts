// The embedded default: a real Postgres server in a data directory, started and owned by this process.
import { findBinaries } from './embedded-binaries.ts'
import { findRunning } from './embedded-orphan.ts'
import { findPlace, knownCluster } from './embedded-place.ts'
import { makeCluster, startServer, stopServer } from './embedded-server.ts'

export type EmbeddedPostgres = {
  readonly url: string
  /** Resolves after `stop`; rejects when the server ends by itself. */
  readonly done: Promise<void>
  stop(): Promise<void>
}

type Options = {
  readonly dataDir: string
  /** Server settings on top of our own. */
  readonly settings?: Readonly<Record<string, string>>
}

export const startPostgres = async (options: Options): Promise<EmbeddedPostgres> => {
  const { place, binaries } = await prepare(options.dataDir)
  const started = await startServer({ place, binaries, settings: options.settings ?? {} })
  // A rejection that nobody waits for yet must not end the process before its owner sees it.
  started.done.catch(() => undefined)
  return {
    url: urlOf(place.sockets),
    done: started.done,
    stop: () => stopServer(started),
  }
}

const prepare = async (dataDir: string) => {
  const place = await findPlace(dataDir)
  const binaries = await findBinaries(place.owner)
  if (await makeCluster(place, binaries)) return { place, binaries }
  return { place: await findPlace(dataDir), binaries }
}

/** The URL of the server that another process runs on this data directory, or `null`. */
export const findPostgres = async (dataDir: string): Promise<string | null> => {
  const cluster = await knownCluster(dataDir)
  const sockets = cluster === null ? null : await findRunning(cluster)
  return sockets === null ? null : urlOf(sockets)
}

const urlOf = (sockets: string) =>
  `postgres://millrace@/postgres?host=${encodeURIComponent(sockets)}`
