// Which of a batch's calls are duplicates.
import type { Verdict } from '../duplicate/duplicates.ts'
import type { Lane, Piece } from './lanes.ts'

export type Verdicts = ReadonlyMap<Lane, Verdict>

/** By lane, in the order of offsets: what is accepted of one batch is what the next is judged by. */
export const judge = async (pieces: readonly Piece[]): Promise<Verdicts> => {
  const verdicts = new Map()
  for (const [lane, own] of Map.groupBy(pieces, (piece) => piece.lane)) {
    const entries = own.flatMap(({ calls }) =>
      calls.map(({ offset, message: { digest, receivedAt } }) => ({ offset, digest, receivedAt })),
    )
    if (entries.length > 0) verdicts.set(lane, await lane.duplicates.judge(entries))
  }
  return verdicts
}
