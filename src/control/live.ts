// The configuration every stage reads: one immutable snapshot, swapped whole when Postgres says so.
// NOTIFY makes it fast, the poll makes it certain; with Postgres away the last good snapshot serves on.
import type { Logger } from 'pino'
import type { Configuration, Live } from '../domain/configuration.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { findVersion, readState, type State } from './state.ts'

type Deps = {
  readonly pool: Pool
  readonly logger: Logger
  readonly clock: Clock
  readonly limits?: Partial<typeof liveLimits>
}

export const liveLimits = {
  /** A notification lost on the way costs at most this long. */
  pollEveryMs: 1_500,
}

type OpenLive = Live & { close(): Promise<void> }

export const openLive = async (deps: Deps): Promise<OpenLive> => {
  const { pool } = deps
  const limits = { ...liveLimits, ...deps.limits }
  const listeners = new Set<(configuration: Configuration) => void>()
  let current = await loadConfiguration(pool)
  const refresh = once(async () => {
    try {
      if ((await findVersion(pool)) === current.version) return
      const next = await loadConfiguration(pool)
      // Versions only ascend: a slower, older read must not undo a newer one.
      if (next.version <= current.version) return
      current = next
      deps.logger.info(
        { version: String(next.version), at: deps.clock() },
        'configuration.replaced',
      )
    } catch (error) {
      deps.logger.warn({ err: error, version: String(current.version) }, 'configuration.kept')
      return
    }
    for (const changed of listeners) changed(current)
  })
  const timer = setInterval(refresh.run, limits.pollEveryMs)
  const unlisten = await pool.listen('configuration', {
    notified: refresh.run,
    reconnected: refresh.run,
  })
  refresh.run()
  return {
    now: () => current,
    onChange: (changed) => {
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
    close: async () => {
      clearInterval(timer)
      await unlisten()
      await refresh.idle()
    },
  }
}

/** Runs one at a time; a wish made meanwhile is one more run afterwards, however many made it. */
const once = (work: () => Promise<void>) => {
  let running: Promise<void> | null = null
  let again = false
  const loop = async () => {
    do {
      again = false
      await work()
    } while (again)
    running = null
  }
  return {
    run: () => {
      if (running !== null) again = true
      else running = loop()
    },
    idle: async () => {
      again = false
      await running
    },
  }
}

export const loadConfiguration = async (pool: Pool): Promise<Configuration> =>
  configurationOf(await readState(pool))

const configurationOf = (state: State): Configuration => {
  const sources = [...state.sources.values()].map(({ secretKeyHash: _, ...source }) => source)
  const destinations = [...state.destinations.values()]
  return {
    version: state.version,
    workspaces: state.workspaces,
    sources: new Map(sources.map((source) => [source.id, source])),
    sourceByWriteKey: new Map(sources.map((source) => [source.writeKey, source])),
    destinations: state.destinations,
    destinationsBySource: new Map(
      sources.map(({ id }) => [id, destinations.filter(({ sourceIds }) => sourceIds.has(id))]),
    ),
    audiences: state.audiences,
  }
}
