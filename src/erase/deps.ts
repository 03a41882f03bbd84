// What erasing is given to work with.
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import type { Appender, Codec } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { EraseLimits } from './limits.ts'

export type EraseDeps = {
  readonly pool: Pool
  readonly appender: Appender
  readonly codecs: { readonly call: Codec<Message> }
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  /** Told of each request that ended, with the seconds since it was made. */
  readonly ended?: (state: 'finished' | 'failed', seconds: number) => void
  readonly limits: EraseLimits
}
