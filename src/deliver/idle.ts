// Forgets what nobody needs any more: lanes with nothing in them, URLs unused for an hour. Both are made again
// when a message comes, so that memory follows the destinations at work and not all there ever were.
import type { Lane, Stage } from './stage.ts'

const idleMs = 3_600_000
const lookMs = 60_000

export const forgetIdle = (stage: Stage, now: number): void => {
  const { urls, lanes, deps } = stage
  if (Math.abs(now - urls.sweptAt) < lookMs) return
  urls.sweptAt = now
  for (const lane of lanes.values()) if (isIdle(stage, lane)) forgetLane(stage, lane)
  const { destinations } = deps.live.now()
  for (const [key, { destinationId, url, health, usedAt, isUnsaved }] of urls.entries) {
    if (health.inFlight > 0 || isUnsaved) continue
    const isKept = destinations.get(destinationId)?.webhooks.some((one) => one.url === url)
    // States are in a table; a breaker that nothing has waited for in an hour may as well be tried again.
    const isUnused =
      now - usedAt > idleMs && health.state === 'ok' && !lanes.get(destinationId)?.parked
    if (isKept && !isUnused) continue
    urls.entries.delete(key)
    const lane = lanes.get(destinationId)
    if (lane) lane.target = null
  }
}

/** Nothing waits, is under way, claimed or parked, and no chain refers to it. */
const isIdle = (stage: Stage, lane: Lane): boolean => {
  if (lane.waiting + lane.rounds + lane.claimed + lane.parked > 0 || lane.inTurn) return false
  // Whether it keeps up is asked of lanes that delivered lately.
  if (performance.now() - lane.deliveredAt < stage.limits.hungryMs) return false
  for (const { chains } of stage.partitions.values())
    if (chains.has(lane.destinationId)) return false
  return true
}

const forgetLane = ({ lanes, paced, starved }: Stage, lane: Lane): void => {
  lanes.delete(lane.destinationId)
  for (const set of [paced, starved.firsts, starved.retries]) set.delete(lane)
}
