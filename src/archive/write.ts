// Writing a segment down: first the file, then in one transaction the index and the position.
import { setTimeout as sleep } from 'node:timers/promises'
import { movePositions } from '../postgres/position.ts'
import { saveSegment } from './manifest.ts'
import { pathOf } from './name.ts'
import type { Lane, Stage } from './stage.ts'
import { noteTrouble, settleTrouble } from './trouble.ts'

/**
 * Closes the lane's open segment and tries to write it until that is done or the lane is over; what was
 * not written then is in the log still. A file that no transaction names is swept by the next owner.
 */
export const rollSegment = async (stage: Stage, lane: Lane): Promise<void> => {
  const { segment } = lane
  if (segment === null || segment.summary.entries === 0) return
  const { bytes, sha256 } = await segment.finish()
  const { topic, partition, epoch } = lane
  const { first, next, summary } = segment
  const name = { topic, partition, first, next, epoch, generation: 0 }
  const path = pathOf({ ...name, compression: stage.deps.compression })
  const row = { ...summary, ...name, path, bytes: bytes.length, sha256, erasedTo: 0n }
  lane.writing.add(path)
  while (!lane.over.aborted) {
    try {
      await stage.deps.store.put(path, bytes, lane.over)
      if (lane.over.aborted) break
      if (await commit(stage, lane, row)) wrote(stage, lane, row)
      else {
        lane.lose()
        stage.fenced(lane.lease)
      }
      break
    } catch (error) {
      if (lane.over.aborted) break
      await noteTrouble(stage, lane, error)
      await sleep(stage.limits.retryMs, undefined, { signal: lane.over }).catch(() => undefined)
    }
  }
  lane.writing.delete(path)
  lane.segment = null
}

type Row = Omit<Parameters<typeof saveSegment>[1], 'writtenAt'>

/** Idempotent: after an answer that was lost it is done again. `false` when the partition is somebody else's. */
const commit = ({ deps }: Stage, { topic, partition, epoch }: Lane, row: Row): Promise<boolean> =>
  deps.pool.transaction(async (tx) => {
    const move = { reader: 'archive', topic, partition, epoch, next: row.next } as const
    const moved = await movePositions(tx, [move])
    if (moved.length === 0) return false
    await saveSegment(tx, { ...row, writtenAt: deps.clock() })
    await settleTrouble(tx, { topic, partition })
    return true
  })

const wrote = (stage: Stage, lane: Lane, { next, entries, bytes }: Row): void => {
  const { topic, partition } = lane
  lane.next = next
  stage.meter.written += 1
  stage.meter.writtenBytes += bytes
  stage.meter.failingSince = null
  stage.deps.logger.info({ topic, partition, entries, bytes }, 'segment.written')
  // A hint for whoever looks at the group's lag; the position is what counts.
  lane.lease.commit(next).catch(() => undefined)
}
