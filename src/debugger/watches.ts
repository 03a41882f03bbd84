// Which sources somebody watches, as one process knows it: asked for each call, so it is a Set and nothing more.
import type { Logger } from 'pino'
import type { Pool } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import type { Clock } from '../running.ts'
import { channels, loadWatches } from './store.ts'

type Deps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: { readonly pollMs: number; readonly watchesMax: number }
}

export type Watches = {
  isWatching(): boolean
  isWatched(sourceId: number): boolean
  close(): Promise<void>
}

export const openWatches = async ({ pool, clock, logger, limits }: Deps): Promise<Watches> => {
  let watched: ReadonlyMap<number, number> = new Map()
  let isAny = false
  const replace = (next: ReadonlyMap<number, number>) => {
    watched = next
    isAny = next.size > 0
  }
  const load = async () => {
    try {
      const rows = await loadWatches(pool, clock(), limits.watchesMax)
      replace(new Map(rows.map(({ sourceId, until }) => [sourceId, until.getTime()])))
    } catch (error) {
      // With Postgres away a watch still ends by itself.
      const at = clock().getTime()
      replace(new Map([...watched].filter(([, until]) => until > at)))
      logger.warn({ err: error }, 'watches.not_loaded')
    }
  }
  const look = repeat(limits.pollMs, load)
  const unlisten = await pool.listen(channels.watches, {
    notified: look.run,
    reconnected: look.run,
  })
  look.run()
  return {
    isWatching: () => isAny,
    isWatched: (sourceId) => isAny && watched.has(sourceId),
    close: async () => {
      await look.stop()
      await unlisten()
      replace(new Map())
    },
  }
}
