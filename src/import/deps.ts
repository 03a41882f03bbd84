// What imports are given to work with.
import type { Logger } from 'pino'
import type { Live, Source } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import type { CallLimits } from '../domain/normalise.ts'
import type { Pipeline } from '../domain/pipeline.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Plan } from '../domain/tracking-plan.ts'
import type { Appender, Codec, History } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { Pace } from './pace.ts'

export type ImportDeps = {
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly appender: Appender
  readonly history: Pick<History, 'read' | 'bounds'>
  readonly codec: Codec<Message>
  readonly pipeline: Pipeline
  readonly suppressions: Suppressions
  /** As the collect stage judges calls of this source. */
  limitsOf(source: Source): CallLimits & { readonly entryBytesMax: number }
  planOf(source: Source, receivedAt: number): Plan | undefined
  readonly pace: Pace
}
