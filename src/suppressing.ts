// The process tells that it lives before it reads who is suppressed: no erasure may begin that did not wait for it.
import type { Logger } from 'pino'
import manifest from '../package.json' with { type: 'json' }
import type { Config } from './config.ts'
import type { Live } from './domain/configuration.ts'
import { type OpenSuppressions, openSuppressions } from './erase/suppressions.ts'
import { startHeartbeat } from './postgres/heartbeat.ts'
import type { Pool } from './postgres/sql.ts'
import type { Clock } from './running.ts'
import { closing, type Part } from './supervise.ts'

type Deps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly config: Pick<Config, 'roles'>
  readonly live: Live
  /** `null`: there is no archive to write. */
  readonly store: object | null
}

/** Resolves when all suppressions are in force here. */
export const startSuppressing = async (
  deps: Deps,
  add: (part: Part) => void,
): Promise<OpenSuppressions> => {
  const { pool: sql, clock, logger, live, config, store } = deps
  let known: OpenSuppressions | null = null
  const heartbeat = await startHeartbeat({
    sql,
    clock,
    version: manifest.version,
    roles: config.roles.filter((role) => role !== 'archive' || store !== null),
    configurationVersion: () => live.now().version,
    suppressionVersion: () => known?.version() ?? 0n,
    onError: (error) => logger.warn({ err: error }, 'heartbeat.missed'),
  })
  add({ name: 'heartbeat', running: heartbeat })
  known = await openSuppressions({
    sql,
    onError: (error) => logger.warn({ err: error }, 'suppressions.not_renewed'),
  })
  add(closing('suppressions', known.close))
  return known
}
