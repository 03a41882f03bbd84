// How many parked rows a lane may have in hand now: its URLs decide, so that a recovery is no stampede.

import type { Lane, Stage } from './stage.ts'
import { gateOf, limitOf } from './urls.ts'

export type Room = {
  /** Rows that are due. */
  readonly due: number
  /** Rows held for a shut gate, the oldest first. */
  readonly held: number
}

const none: Room = { due: 0, held: 0 }

export const roomOf = (stage: Stage, lane: Lane, now: number): Room => {
  const { claimPerLaneMax, urlConcurrencyMax } = stage.limits
  if (lane.parked <= lane.claimed) return none
  const gate = gateOf(stage, lane, now)
  const isRamp = lane.target?.urls.every(({ health }) => health.breaker !== 'closed') ?? false
  const most = isRamp ? Math.min(claimPerLaneMax, 2 * Math.max(1, limitOf(lane))) : claimPerLaneMax
  const due = Math.max(0, Math.min(most, lane.parked) - lane.claimed)
  if (gate !== 'shut' && gate !== 'probe') return { due, held: lane.mayHold ? due : 0 }
  // Last tries, and what was waiting for its next try when the gate was shut.
  const isTime = performance.now() >= lane.askAt
  const last = Math.min(2 * urlConcurrencyMax, claimPerLaneMax, lane.parked) - lane.claimed
  const held = gate === 'probe' && lane.mayHold && lane.claimed === 0 ? 1 : 0
  return { due: isTime ? Math.max(held, last) : held, held }
}
