// What a rebuild is given.
import type { Logger } from 'pino'
import type { Message } from '../domain/message.ts'
import type { Suppressions } from '../domain/suppression.ts'
import { type Codec, type History, type Place, placeOf } from '../log/log.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import type { RebuildLimits } from './limits.ts'
import type { RebuildMeter } from './meter.ts'

export type RebuildDeps = {
  readonly pool: Pool
  /** Another pool on the same database, whose sessions have these server settings. */
  openPool(settings: Readonly<Record<string, string>>, connectionsMax: number): Pool
  /** From the first offset on, the archive included where there is one. */
  readonly history: History
  readonly codecs: { readonly call: Codec<Message> }
  readonly clock: Clock
  /** Nobody is suppressed when absent. */
  readonly suppressions?: Suppressions
  readonly logger: Logger
  readonly meter: RebuildMeter
  readonly limits: RebuildLimits
}

export const topics = ['calls', 'calls.import'] as const

/** By "topic/partition": the next offset of each. */
export type Vector = ReadonlyMap<string, bigint>

export const vectorOf = (rows: readonly (Place & { readonly next: bigint })[]): Vector =>
  new Map(rows.map((row) => [placeOf(row), row.next]))

export const distance = (from: Vector, to: Vector): number =>
  [...to].reduce((sum, [place, next]) => {
    const left = Number(next - (from.get(place) ?? 0n))
    return sum + Math.max(0, left)
  }, 0)
