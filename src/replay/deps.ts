// What the replay stage is given, and what it has in hand for one replay.
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import type { Message, Outbound } from '../domain/message.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Appender, Codec, History } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { ReplayLimits } from './limits.ts'
import type { ReplayMeter } from './meter.ts'

export type ReplayDeps = {
  /** What is read: the log, or the log with an archive before it. */
  readonly history: History
  /** The log itself, whose topic `outbound.replay` is written. */
  readonly source: Pick<History, 'bounds'>
  readonly appender: Pick<Appender, 'append'>
  readonly codecs: { readonly call: Codec<Message>; readonly outbound: Codec<Outbound> }
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: ReplayMeter
  readonly suppressions: Suppressions
  readonly limits: ReplayLimits
}
