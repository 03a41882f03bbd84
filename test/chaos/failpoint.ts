// Where a deliver process of the kills may die, what it is started with, and what it tells its parent.
import type { DeliverLimits } from '../../src/deliver/limits.ts'

/** Rows 1 to 6 of the failure table; row 7 is another process that takes partitions meanwhile. */
export const failpoints = [
  'before the request',
  'after the answer',
  'before a commit',
  'after a commit',
  'before duplicates are recorded',
  'after duplicates are recorded',
  'before a position',
  'after a position',
  'after a claim',
  'before a delivered row is gone',
] as const

export type Failpoint = (typeof failpoints)[number]

export type LogChoice =
  /** Partitions of a process that died move within seconds; else as in production, also where the machine hangs. */
  | { readonly type: 'postgres'; readonly movesSoon: boolean }
  | {
      readonly type: 'kafka'
      readonly brokers: readonly string[]
      readonly prefix: string
      readonly sessionMs: number
    }

/** A destination of its own for each, numbered from 1. */
export type Target = { readonly url: string; readonly sourceId: number }

export type ChildStart = {
  readonly databaseUrl: string
  readonly log: LogChoice
  readonly targets: readonly Target[]
  /** Dies when it comes there for the so-manieth time. */
  readonly fail: { readonly at: Failpoint; readonly times: number } | null
  /** Its clock began at this real time and runs so much faster. */
  readonly clock: { readonly from: number; readonly speed: number }
  readonly limits: Partial<DeliverLimits>
  /** Where alerts go; nowhere when absent. */
  readonly operator?: string
}

export type News =
  | { readonly type: 'started' }
  /** A position was written: of what had been settled so long ago. */
  | { readonly type: 'position'; readonly tookMs: number }
  /** A partition was taken from it, or is read by it from now on. */
  | { readonly type: 'lost' | 'gained' }
  /** Several times a second: why partitions stand still, how many, the memory it holds, in bytes, and of its requests. */
  | {
      readonly type: 'standing'
      readonly paused: Readonly<Record<string, number>>
      readonly rss: number
      /** URLs whose breaker is open, those asked several times at once, and requests whose answer was not heard. */
      readonly shut: number
      readonly crowded: number
      readonly unheard: number
    }
