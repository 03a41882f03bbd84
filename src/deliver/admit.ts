// Whether a delivery enters its lane, is parked at once, or holds its partition back.
import { dropIdle } from './chains.ts'
import { isDeskFull } from './desk.ts'
import { hold } from './hold.ts'
import { enter, pump } from './lanes.ts'
import { holdsUpReplays, isLaneFull, isOverflowing, isReplayFull } from './overflow.ts'
import { park, parkWaiting, untried } from './park.ts'
import { quotaOf } from './quota.ts'
import { startRound } from './round.ts'
import type { Delivery, Lane, Partition, Stage } from './stage.ts'
import { gateOf, isWellAll } from './urls.ts'

const lookMs = 50

/** `true` at once in the usual case; else a promise of `false` when the partition was lost or we stop. */
export const admit = (stage: Stage, delivery: Delivery): true | Promise<boolean> =>
  tryAdmit(stage, delivery) ? true : admitLater(stage, delivery)

const admitLater = async (stage: Stage, delivery: Delivery): Promise<boolean> => {
  const { chain } = delivery
  chain.pinned = true
  let admitted = false
  while (!admitted && !stage.stopping && !chain.partition.lost) {
    chain.partition.paused = reasonOf(stage, chain.lane)
    await stage.room.wait(lookMs)
    admitted = tryAdmit(stage, delivery)
  }
  chain.partition.paused = null
  chain.pinned = false
  dropIdle(chain)
  return admitted
}

/** `postgres`: it takes nothing, or not as fast as it comes; `quota`: too much is parked; `room`: of the lane. */
const reasonOf = (stage: Stage, lane: Lane): Partition['paused'] => {
  if (isDeskFull(stage)) return 'postgres'
  return stage.quota.states.get(lane.destinationId) === 'braked' ? 'quota' : 'room'
}

const tryAdmit = (stage: Stage, delivery: Delivery): boolean => {
  const { chain } = delivery
  const { lane, partition } = chain
  if (stage.stopping || partition.lost || isDeskFull(stage)) return false
  if (partition.spilled.has(lane.destinationId)) return tryPark(stage, delivery, 'lane_full')
  if (chain.parked > 0) return tryPark(stage, delivery, 'behind_parked')
  if (!isWellAll(lane) && isShut(stage, lane)) {
    if (isBraked(stage, lane)) return false
    hold(stage, delivery)
    return true
  }
  if (isSpanFull(stage, partition)) {
    relieve(stage, partition)
    return false
  }
  if (partition.topic === 'outbound.replay' && isReplayFull(stage, lane))
    return holdsUpReplays(stage, lane) && tryPark(stage, delivery, 'lane_full')
  if (isLaneFull(stage, lane)) {
    return isOverflowing(stage, lane) && tryPark(stage, delivery, 'lane_full')
  }
  enter(stage, delivery)
  pump(stage, (next) => startRound(stage, next))
  return true
}

type Why = 'lane_full' | 'behind_parked'

/** Nothing is dropped: what may not be parked either waits in the log. */
const tryPark = (stage: Stage, delivery: Delivery, why: Why): boolean => {
  if (isBraked(stage, delivery.chain.lane)) return false
  park(stage, delivery, untried(why))
  return true
}

const isBraked = (stage: Stage, { destinationId }: Lane): boolean =>
  quotaOf(stage, destinationId) === 'braked'

/** Also while one may find out: that is for what has been waiting. */
const isShut = (stage: Stage, lane: Lane): boolean => {
  const gate = gateOf(stage, lane, stage.deps.clock().getTime())
  return gate === 'shut' || (gate === 'probe' && lane.parked + lane.waiting > 0)
}

const isSpanFull = ({ limits }: Stage, { tracker }: Partition): boolean =>
  tracker.span() >= limits.spanMax || tracker.doneBytes() >= limits.doneBytesMax

/** Everything of the partition that only waits is parked, so that its position can go on. */
const relieve = (stage: Stage, partition: Partition): void => {
  for (const chains of [...partition.chains.values()])
    for (const chain of [...chains.values()])
      if (!isBraked(stage, chain.lane)) parkWaiting(stage, chain, 'lane_full')
}
