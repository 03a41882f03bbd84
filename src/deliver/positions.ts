// Writes every changed position in one statement, four times a second, and tells the log the watermark now and then.
import { placeOf } from '../log/log.ts'
import { movePositions } from '../postgres/position.ts'
import { abandon } from './lanes.ts'
import { recall } from './memory.ts'
import { encodeState } from './position-state.ts'
import type { Partition, Stage } from './stage.ts'

type Moving = { readonly partition: Partition; readonly version: number; readonly next: bigint }

export const writePositions = async (stage: Stage): Promise<void> => {
  await moveChanged(stage)
  for (const partition of stage.partitions.values())
    if (isToTell(stage, partition)) partition.telling ??= tellLog(stage, partition)
}

const moveChanged = async (stage: Stage): Promise<void> => {
  const moving: Moving[] = []
  const moves = []
  for (const partition of stage.partitions.values()) {
    const version = partition.tracker.version()
    if (partition.lost || version === partition.written) continue
    const { topic, epoch } = partition
    const known = recall(partition)
    const next = BigInt(known.settled.next)
    const state = encodeState(known)
    moves.push({
      reader: 'deliver' as const,
      topic,
      partition: partition.partition,
      epoch,
      next,
      state,
    })
    moving.push({ partition, version, next })
  }
  if (moves.length === 0) return
  stage.meter.positionBytes = Math.max(...moves.map(({ state }) => state.length))
  const moved = await movePositions(stage.deps.pool, moves)
  const ours = new Set(moved.map(placeOf))
  for (const { partition, version, next } of moving)
    if (ours.has(placeOf(partition))) {
      partition.written = version
      partition.watermark = next
    } else lose(stage, partition)
}

/** What the log knows is a hint for those who look at it: telling it each position would cost a statement each. */
const isToTell = ({ limits, stopping }: Stage, partition: Partition): boolean => {
  const { committed, watermark, toldAt, lost, written } = partition
  if (lost || written < 0 || committed === watermark) return false
  return stopping || performance.now() - toldAt >= limits.tellEveryMs
}

/** Positions do not wait for it: while the log is away they are what keeps a crash from repeating much. */
const tellLog = async (stage: Stage, partition: Partition): Promise<void> => {
  partition.toldAt = performance.now()
  try {
    while (partition.committed !== partition.watermark && !partition.lost) {
      const next = partition.watermark
      if ((await partition.lease.commit(next)) === 'lost') return
      partition.committed = next
    }
  } catch (error) {
    stage.deps.logger.error({ err: error }, 'commit.failed')
  } finally {
    partition.telling = null
  }
}

/** Until the log knows what the positions say. */
export const logTold = async (stage: Stage): Promise<void> => {
  await Promise.all([...stage.partitions.values()].map(({ telling }) => telling))
}

/** Somebody else gained the partition: its epoch moved on. */
export const lose = (stage: Stage, partition: Partition): void => {
  if (partition.lost) return
  stage.deps.logger.warn(
    { topic: partition.topic, partition: partition.partition },
    'position.lost',
  )
  partition.lost = true
  abandon(stage, partition)
  stage.fenced(partition.lease)
}
