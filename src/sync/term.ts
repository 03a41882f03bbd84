// What one term of leadership has in hand: the stage's dependencies, the epoch and the lock.
import type { Logger } from 'pino'
import type { SweepDue } from '../audience/sweep.ts'
import type { Live } from '../domain/configuration.ts'
import type { Outbound } from '../domain/message.ts'
import { Fault } from '../fault.ts'
import type { Appender, Codec, Source } from '../log/log.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { SyncLimits } from './limits.ts'

export type SyncDeps = {
  readonly source: Source
  readonly appender: Appender
  readonly codecs: { readonly outbound: Codec<Outbound> }
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: SyncLimits
  readonly sweepDue: SweepDue
}

export type Term = {
  readonly deps: SyncDeps
  /** Of the relay row; whoever reads another one there has been replaced. */
  readonly epoch: bigint
  /** The connection whose session holds the lock: its queries fail when the lock is gone. */
  readonly seat: Sql
  /** Aborts when the stage stops or another part of the term failed. */
  readonly signal: AbortSignal
}

export const termLost = (): Fault =>
  new Fault('position_lost', 'another process took over the sync', { retriable: true })
