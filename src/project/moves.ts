// How far a batch moves its lanes.
import type { Desk } from './desk.ts'
import type { Lane, Piece } from './lanes.ts'

/** How far each lane of the batch moves. */
export type Moves = ReadonlyMap<Lane, { readonly next: bigint; readonly folded: number }>

export const movesOf = (pieces: readonly Piece[]): Moves => {
  const moves = new Map<Lane, { next: bigint; folded: number }>()
  for (const { lane, next, calls } of pieces) {
    let folded = moves.get(lane)?.folded ?? lane.folded
    for (const { message } of calls) folded = Math.max(folded, message.receivedAt)
    moves.set(lane, { next, folded })
  }
  return moves
}

/** The instant that a batch is evaluated at: the highest receivedAt there was. */
export const highestOf = (desk: Desk, moves: Moves): number =>
  Math.max(desk.folded, ...[...moves.values()].map(({ folded }) => folded))
