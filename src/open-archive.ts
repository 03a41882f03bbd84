// Opens the process's archive where one is configured, and the past that its readers see with it.
import { archiveHistory } from './archive/history.ts'
import { openStore, type Store } from './archive/store.ts'
import { credentialsOf, placeOf } from './archiving.ts'
import type { Config } from './config.ts'
import type { History } from './log/log.ts'
import type { Log } from './open-log.ts'
import type { Pool } from './postgres/sql.ts'

export type Past = {
  /** `null` where no archive is configured. */
  readonly store: Store | null
  /** The log, with the archive before it where there is one. */
  readonly history: History
}

type Deps = Pick<Log, 'source' | 'codecs'> & { readonly config: Config; readonly pool: Pool }

export const openPast = ({ config, source, codecs, pool }: Deps): Past => {
  const place = placeOf(config)
  if (place === null) return { store: null, history: source }
  const store = openStore({ place, credentials: credentialsOf(config) })
  return { store, history: archiveHistory({ log: source, pool, store, codecs }) }
}
