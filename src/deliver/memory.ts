// What this process knows of a partition that it had, lost, and gains again: more than the position says, when
// Postgres was away before it could be written.
import type { Position } from '../postgres/position.ts'
import { tallyPairs } from './pairs.ts'
import { decodeState, type State } from './position-state.ts'
import type { Partition } from './stage.ts'

/** What its position would say, were it written now. */
export const recall = (partition: Partition): State => ({
  settled: partition.tracker.snapshot(),
  marks: partition.marks,
  ...tallyPairs(partition),
  rough: false,
})

/**
 * Every gain takes the next epoch: where ours follows the one we had, or those that we took since without
 * reading anything, nobody else had the partition meanwhile, and what we knew of it is all there is.
 */
export const resume = (position: Position, old: Partition | undefined): State => {
  if (old && position.epoch === old.regained + 1n) {
    old.regained = position.epoch
    return recall(old)
  }
  return decodeState(position.state, Number(position.next))
}
