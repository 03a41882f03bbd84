// What of a batch is folded and metered, each call with its place in the log.
import { isDropped, type Suppressions } from '../domain/suppression.ts'
import type { Call } from './call.ts'
import type { Placed } from './fold.ts'
import type { Lane, Piece } from './lanes.ts'

type Batch = {
  readonly pieces: readonly Piece[]
  /** By piece, then by call. */
  readonly calls: readonly (readonly Call[])[]
  readonly verdicts: ReadonlyMap<Lane, { readonly duplicate: readonly boolean[] }>
}

/** Without duplicates, and without what is not to be heard. */
export const placed = (
  { pieces, calls, verdicts }: Batch,
  suppressions: Suppressions,
): readonly Placed[] => {
  const judged = new Map<Lane, number>()
  return pieces.flatMap(({ lane, calls: received }, piece) => {
    const start = judged.get(lane) ?? 0
    judged.set(lane, start + received.length)
    const duplicate = verdicts.get(lane)?.duplicate ?? []
    const { topic, partition } = lane.lease
    return received.flatMap(({ offset, message }, at) =>
      duplicate[start + at] === true || isDropped(suppressions, message)
        ? []
        : [{ call: calls[piece]?.[at] as Call, message, topic, partition, offset }],
    )
  })
}
