// Gives up parked rows in bulk: nobody wants them any more.
import type { Connection } from '../postgres/sql.ts'
import { heldPartitions } from './claim.ts'
import { type Cancelled, cancelParked, nothingCancelled } from './dead-store.ts'
import { isServed, withdrawnStretches } from './replays.ts'
import type { Stage } from './stage.ts'

/** Gives up what is parked for destinations that are gone or switched off, and for cancelled replays. */
export const cancelGone = async (tx: Connection, stage: Stage, at: Date): Promise<Cancelled> => {
  const { destinations } = stage.deps.live.now()
  const gone = [...stage.lanes.values()].filter(
    (lane) => lane.parked > 0 && !destinations.get(lane.destinationId)?.enabled,
  )
  const partitions = heldPartitions(stage)
  const stretches = [
    ...gone.flatMap(({ destinationId }) =>
      partitions
        .filter((partition) => !isServed(destinations.get(destinationId), partition))
        .map(({ topic, partition }) => ({
          ...{ topic, partition, destinationId },
          below: Number.MAX_SAFE_INTEGER,
        })),
    ),
    ...withdrawnStretches(stage, partitions),
  ]
  if (stretches.length === 0) return nothingCancelled
  return cancelParked(tx, { stretches, at, limit: stage.limits.claimMax })
}
