// What happened to calls on their way, counted: one counter for each source, destination, step, type and reason.
import type { CallType } from './message.ts'

/** In the order a call goes through them; `filtered` without a destination is at its source. */
export const pipelineSteps = ['received', 'rejected', 'filtered', 'appended'] as const

export type PipelineStep = (typeof pipelineSteps)[number]

export type Counted = {
  readonly sourceId: number
  /** `null` for what concerns the source itself. */
  readonly destinationId: number | null
  readonly step: PipelineStep
  /** `unknown` when the call does not say one of ours. */
  readonly type: CallType | 'unknown'
  /** A rejection code or filter reason; `null` where there is none to give. */
  readonly reason: string | null
}

/** Adds up in memory and costs no round trip; what it has not yet saved is lost with the process. */
export type Pipeline = { count(counted: Counted, amount: number): void }

export const uncounted: Pipeline = { count: () => undefined }
