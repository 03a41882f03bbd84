// The configuration every stage reads: one immutable snapshot, swapped whole when Postgres says so.
// NOTIFY makes it fast, the poll makes it certain; with Postgres away the last good snapshot serves on.
import type { Logger } from 'pino'
import type { Configuration, Live } from '../domain/configuration.ts'
import type { Pool } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import type { Clock } from '../running.ts'
import type { Keyring } from './secret.ts'
import { findVersion, readState, type State } from './state.ts'

type Deps = {
  readonly pool: Pool
  readonly logger: Logger
  readonly clock: Clock
  /** `null`: this process signs nothing, and reads no secrets. */
  readonly keyring: Keyring | null
  readonly limits?: Partial<typeof liveLimits>
}

export const liveLimits = {
  /** A notification lost on the way costs at most this long. */
  pollEveryMs: 1_500,
  /** Who asked for what is newest waits for it no longer than this: Postgres may be away. */
  refreshMsMax: 1_000,
}

type OpenLive = Live & {
  /** Resolves when the snapshot has what was committed before this call, or could not get it in time. */
  refresh(): Promise<void>
  close(): Promise<void>
}

export const openLive = async (deps: Deps): Promise<OpenLive> => {
  const { pool, keyring } = deps
  const limits = { ...liveLimits, ...deps.limits }
  const listeners = new Set<(configuration: Configuration) => void>()
  let current = await loadConfiguration(pool, keyring)
  const refresh = repeat(limits.pollEveryMs, async () => {
    try {
      if ((await findVersion(pool)) === current.version) return
      const next = await loadConfiguration(pool, keyring)
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
    refresh: () => atMost(limits.refreshMsMax, refresh.ran()),
    close: async () => {
      await refresh.stop()
      await unlisten()
    },
  }
}

const atMost = (ms: number, work: Promise<void>): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })

export const loadConfiguration = async (
  pool: Pool,
  keyring: Keyring | null,
): Promise<Configuration> => configurationOf(await readState(pool, keyring))

const configurationOf = (state: State): Configuration => {
  const sources = [...state.sources.values()]
  const destinations = [...state.destinations.values()]
  return {
    version: state.version,
    workspaces: state.workspaces,
    sources: state.sources,
    sourceByWriteKey: new Map(sources.map((source) => [source.writeKey, source])),
    sourceBySecretKeyHash: new Map(sources.map((source) => [source.secretKeyHash, source])),
    destinations: state.destinations,
    destinationsBySource: new Map(
      sources.map(({ id }) => [id, destinations.filter(({ sourceIds }) => sourceIds.has(id))]),
    ),
    audiences: state.audiences,
  }
}
