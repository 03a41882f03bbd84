// Whether a lane has room, and what becomes of the log while it has none.
import { performance } from 'node:perf_hooks'
import type { Lane, Stage } from './stage.ts'
import { gateOf } from './urls.ts'

/**
 * Each lane may hold as much as is still free: sick lanes share the memory and never use it up. For a first one
 * there is always room: no lane is idle because of what others hold.
 */
export const isLaneFull = (stage: Stage, lane: Lane): boolean => {
  const { limits, bytes, waiting } = stage
  const laneMax = Math.max(1, Math.min(limits.laneMax, limits.waitingMax - waiting))
  if (lane.waiting >= laneMax || lane.bytes >= limits.bytesMax - bytes) return true
  if (lane.waiting * 2 < laneMax) lane.full = null
  return false
}

/** A replay takes a part of a lane, so that live messages find room whatever it sends. */
export const isReplayFull = ({ limits }: Stage, lane: Lane): boolean => {
  if (lane.replaying >= limits.replayLaneMax) return true
  lane.replayFullSince = null
  return false
}

/** Replays to others stand behind it in the topic: after a moment its overflow makes way. */
export const holdsUpReplays = ({ replays, limits }: Stage, lane: Lane): boolean => {
  lane.replayFullSince ??= performance.now()
  return replays.known.size > 1 && performance.now() - lane.replayFullSince >= limits.fullMs
}

/**
 * A full lane holds the log back: that costs nobody anything and spares Postgres the rows, unless it lasts
 * while another lane, which keeps up, has nothing to do because of it, or for longer than others, of whose
 * messages nothing is known before they are read, may be asked to wait.
 */
export const isOverflowing = (stage: Stage, lane: Lane): boolean => {
  const now = performance.now()
  lane.full ??= { since: now, ...look(lane, now), isSlow: false }
  if (now - lane.full.since < stage.limits.fullMs) return false
  if (isNext(stage, lane)) return false
  return isAnotherHungry(stage, lane) || (isSlow(stage, lane) && hasOthers(stage))
}

/**
 * It has only a few, and one of them could start now: not its receiver is slow but many lanes are at work, which
 * together fill the memory of all. Parked, its overflow would cost what they all wait for, and be back at once.
 */
const isNext = (stage: Stage, lane: Lane): boolean =>
  lane.waiting < stage.limits.laneFew &&
  lane.live.size() > 0 &&
  lane.rounds < stage.limits.roundsPerLaneMax &&
  gateOf(stage, lane, stage.deps.clock().getTime()) === 'go'

const look = ({ begun }: Lane, lookedAt: number) => ({
  lookedAt,
  begun,
  loop: performance.eventLoopUtilization(),
})

/** Above it this process is what everything waits for: parking would only give it more to do. */
const busyShare = 0.9

/** At the pace of the last moments what waits would take too long, though this process has time to spare. */
const isSlow = ({ limits }: Stage, lane: Lane): boolean => {
  const { full, begun, waiting } = lane
  if (!full) return false
  const now = performance.now()
  const ms = now - full.lookedAt
  if (ms < limits.fullMs) return full.isSlow
  const { utilization } = performance.eventLoopUtilization(full.loop)
  full.isSlow = waiting * ms > limits.slowMs * (begun - full.begun) && utilization < busyShare
  Object.assign(full, look(lane, now))
  return full.isSlow
}

const hasOthers = ({ deps }: Stage): boolean => deps.live.now().destinations.size > 1

const isAnotherHungry = (stage: Stage, full: Lane): boolean => {
  const since = performance.now() - stage.limits.hungryMs
  for (const lane of stage.lanes.values())
    if (lane !== full && lane.waiting === 0 && lane.rounds === 0 && lane.deliveredAt > since)
      return true
  return false
}
