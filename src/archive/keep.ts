// Keeping the archive: drops what is past its days, writes anew what holds erased users, sweeps what is left over.
import { setTimeout as sleep } from 'node:timers/promises'
import { dropSegment, loadSegments, type SegmentRow } from './manifest.ts'
import { rewriteErased } from './rewrite.ts'
import { holdsPosition, type Lane, type Stage } from './stage.ts'
import { sweep } from './sweep.ts'
import { noteTrouble } from './trouble.ts'

const pollMs = 250

/** A round at once and then by the clock: under virtual time, virtual. Returns when the stage stops. */
export const keepArchive = async (stage: Stage): Promise<void> => {
  const { limits, stopping, deps } = stage
  /** By lane: one that is gained anew is looked after at once. */
  const due = new WeakMap<Lane, number>()
  while (!stopping.aborted) {
    for (const lane of [...stage.lanes.values()]) {
      const now = deps.clock().getTime()
      if (lane.over.aborted || (due.get(lane) ?? now) > now) continue
      due.set(lane, now + limits.keepEveryMs)
      try {
        await keepLane(stage, lane)
      } catch (error) {
        if (!lane.over.aborted) await noteTrouble(stage, lane, error)
      }
    }
    await sleep(pollMs, undefined, { signal: stopping }).catch(() => undefined)
  }
}

const keepLane = async (stage: Stage, lane: Lane): Promise<void> => {
  await sweep(stage, lane)
  await dropOld(stage, lane)
  await rewriteErased(stage, lane)
}

const segmentsAtOnce = 100

/** From the front only, so that what is left has no gap. */
const dropOld = async (stage: Stage, lane: Lane): Promise<void> => {
  const { deps, limits } = stage
  if (limits.keepMs === 0) return
  const horizon = deps.clock().getTime() - limits.keepMs
  const isOld = ({ receivedTo }: SegmentRow) => (receivedTo?.getTime() ?? 0) < horizon
  for (;;) {
    const rows = await loadSegments(deps.pool, { ...lane, from: 0n, limit: segmentsAtOnce })
    const kept = rows.findIndex((row) => !isOld(row))
    const old = kept < 0 ? rows : rows.slice(0, kept)
    for (const segment of old) if (!(await drop(stage, lane, segment))) return
    if (old.length === 0 || old.length < rows.length) return
  }
}

/** The index first: a file that it names is there, whatever dies when. */
const drop = async ({ deps }: Stage, lane: Lane, segment: SegmentRow): Promise<boolean> => {
  const isOurs = await deps.pool.transaction(async (tx) => {
    if (!(await holdsPosition(tx, lane))) return false
    await dropSegment(tx, segment)
    return true
  })
  if (!isOurs || lane.over.aborted) return false
  await deps.store.remove(segment.path, lane.over)
  deps.logger.info({ path: segment.path }, 'segment.dropped')
  return true
}
