// Opens imports for the admin role: judged as collect judges, appended beside the live calls, at a pace of their own.
import type { Logger } from 'pino'
import { openPlans } from './collect/judge/plan.ts'
import { collectLimits, limitsOf } from './collect/limits.ts'
import type { Live } from './domain/configuration.ts'
import type { Pipeline } from './domain/pipeline.ts'
import type { Suppressions } from './domain/suppression.ts'
import type { Violations } from './domain/tracking-plan.ts'
import { type Imports, openImports } from './import/imports.ts'
import { openPace } from './import/open-pace.ts'
import type { History } from './log/log.ts'
import type { Log } from './open-log.ts'
import type { Pool } from './postgres/sql.ts'
import type { Clock } from './running.ts'

type Deps = Pick<Log, 'source' | 'importAppender' | 'codecs'> & {
  /** Reaches beyond the log's retention where there is an archive: a chunk may be gone on with late. */
  readonly history: History
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly pipeline: Pipeline
  readonly suppressions: Suppressions
  readonly violations: Violations
}

export const importsOf = (deps: Deps): Imports & { close(): void } => {
  const plans = openPlans(deps)
  const pace = openPace({ ...deps, sql: deps.pool, history: deps.source })
  const imports = openImports({
    ...deps,
    appender: deps.importAppender,
    codec: deps.codecs.call,
    limitsOf: (source) => limitsOf(collectLimits, source),
    planOf: plans.of,
    pace,
  })
  return { ...imports, close: pace.close }
}
