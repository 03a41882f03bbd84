// What everything of the collect stage is given to work with, from the stage's own start.
import type { Logger } from 'pino'
import type { Debugger } from '../debugger/debugger.ts'
import type { Configuration, Live, Region } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import type { Pipeline } from '../domain/pipeline.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Appender, Codec } from '../log/log.ts'
import type { Clock } from '../running.ts'
import type { Count } from './count.ts'
import type { Gates } from './gate/admit.ts'
import type { Plans } from './judge/plan.ts'
import type { LookAgain } from './request/look-again.ts'

export type Deps = Gates & {
  readonly appender: Appender
  readonly codec: Codec<Message>
  readonly live: Live
  readonly lookAgain: LookAgain
  readonly clock: Clock
  readonly logger: Logger
  /** The most that any source may send. */
  readonly bodyBytesMax: (configuration: Configuration) => number
  readonly region: Region
  readonly count: Count
  readonly messageId: () => string
  readonly pipeline: Pipeline
  readonly plans: Plans
  readonly debugger: Debugger
  readonly suppressions: Suppressions
  /** Answers what can never succeed as if it had; it is counted all the same. */
  readonly always200: boolean
  /** Told of every append's end, for readiness. */
  readonly appended: (isAcknowledged: boolean) => void
}
