// Which of a batch's calls are duplicates.
import type { Verdict } from '../duplicate/duplicates.ts'
import type { Lane, Piece } from './lanes.ts'

export type Verdicts = ReadonlyMap<Lane, Verdict>

/**
 * By lane, in the order of offsets: what is accepted of one batch is what the next is judged by. `stored` resolves
 * once all that was accepted is.
 */
export const judge = async (
  pieces: readonly Piece[],
  stored?: () => Promise<unknown>,
): Promise<Verdicts> => {
  const verdicts = new Map()
  for (const [lane, own] of Map.groupBy(pieces, (piece) => piece.lane)) {
    const entries = own.flatMap(({ calls }) =>
      calls.map(({ offset, message: { digest, receivedAt } }) => ({ offset, digest, receivedAt })),
    )
    if (entries.length > 0) verdicts.set(lane, await lane.duplicates.judge(entries, stored))
  }
  return verdicts
}

/** Of lanes that are still ours. */
export const verdictsOf = (pieces: readonly Piece[], verdicts: Verdicts): Verdicts => {
  const lanes = new Set(pieces.map(({ lane }) => lane))
  return new Map([...verdicts].filter(([lane]) => lanes.has(lane)))
}
