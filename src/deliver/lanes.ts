// Lanes: which delivery goes next. Destinations take turns; within a chain one round at a time.
import { dropIdle, laneOf } from './chains.ts'
import {
  type Chain,
  count,
  type Delivery,
  isBeside,
  type Lane,
  type Partition,
  type Stage,
} from './stage.ts'
import { gateOf, hasRoomForLast, limitOf } from './urls.ts'

/** Puts a delivery at the end of its chain. */
export const enter = (stage: Stage, delivery: Delivery): void => {
  const { chain } = delivery
  chain.waiting.push(delivery)
  weigh(stage, delivery, 1)
  makeReady(stage, chain)
}

/** Takes everything that waits out of a chain, in order. */
export const takeWaiting = (stage: Stage, chain: Chain): readonly Delivery[] => {
  const taken = chain.waiting.splice(0)
  for (const delivery of taken) weigh(stage, delivery, -1)
  return taken
}

const weigh = (stage: Stage, delivery: Delivery, by: 1 | -1): void => {
  const { lane, partition } = delivery.chain
  const bytes = by * delivery.body.length
  lane.waiting += by
  if (partition.topic === 'outbound.replay') lane.replaying += by
  lane.bytes += bytes
  stage.waiting += by
  stage.bytes += bytes
  if (!isBeside(partition)) stage.waitingLive += by
}

const makeReady = (stage: Stage, chain: Chain): void => {
  const [next] = chain.waiting
  if (!next || chain.busy || chain.queued) return
  chain.queued = true
  const { lane } = chain
  if (next.row?.isLast) lane.last.push(chain)
  else if (next.row) lane.retry.push(chain)
  else if (isBeside(chain.partition)) lane.imports.push(chain)
  else lane.live.push(chain)
  takeTurn(stage, lane)
}

const takeTurn = (stage: Stage, lane: Lane): void => {
  if (lane.inTurn || lane.rounds >= stage.limits.roundsPerLaneMax) return
  lane.inTurn = true
  stage.turn.push(lane)
}

/** Something may start in the lane again. */
export const offer = (stage: Stage, lane: Lane): void => {
  if (hasReady(lane)) takeTurn(stage, lane)
}

/** Time has passed: lanes held back by their rate are looked at again. */
export const offerPaced = (stage: Stage): void => {
  const lanes = [...stage.paced]
  stage.paced.clear()
  for (const lane of lanes) offer(stage, lane)
}

/** Starts rounds while there is room for them, one lane after the other. */
export const pump = (stage: Stage, start: (delivery: Delivery) => void): void => {
  while (!stage.stopping && stage.rounds < stage.limits.roundsMax) {
    const lane = stage.turn.shift() ?? takeStarved(stage)
    if (!lane) return
    lane.inTurn = false
    const delivery = nextOf(stage, lane)
    if (!delivery) continue
    takeTurn(stage, lane)
    start(delivery)
  }
}

/** A lane whose kind of round has room again. */
const takeStarved = (stage: Stage): Lane | undefined => {
  const { firsts, retries } = stage.starved
  return (
    (retries.size > 0 && hasRetryRoom(stage) ? takeOne(retries) : undefined) ??
    (firsts.size > 0 && hasFirstRoom(stage) ? takeOne(firsts) : undefined)
  )
}

const takeOne = (lanes: Set<Lane>): Lane | undefined => {
  for (const lane of lanes) {
    lanes.delete(lane)
    return lane
  }
  return undefined
}

const hasRetryRoom = ({ limits, retries }: Stage): boolean =>
  retries < limits.roundsMax * (1 - limits.firstShareMin)

const hasFirstRoom = ({ limits, rounds, retries }: Stage): boolean =>
  rounds - retries < limits.roundsMax * (1 - limits.retryShareMin)

/** The next delivery of a lane, counted as started; `undefined` when nothing may start. */
const nextOf = (stage: Stage, lane: Lane): Delivery | undefined => {
  if (lane.rounds >= stage.limits.roundsPerLaneMax || !hasReady(lane)) return undefined
  const now = stage.deps.clock().getTime()
  const gate = gateOf(stage, lane, now)
  if (gate === 'paced') stage.paced.add(lane)
  const isOpen = gate === 'go' || gate === 'probe'
  if (!isOpen && (lane.last.size() === 0 || !hasRoomForLast(lane, now))) return undefined
  for (;;) {
    const chain = shiftChain(stage, lane, isOpen)
    if (!chain) return undefined
    chain.queued = false
    const delivery = chain.partition.lost || chain.busy ? undefined : chain.waiting.shift()
    if (!delivery) continue
    weigh(stage, delivery, -1)
    begin(stage, delivery)
    return delivery
  }
}

const shiftChain = (stage: Stage, lane: Lane, isOpen: boolean): Chain | undefined => {
  if (lane.retry.size() + lane.last.size() > 0) {
    if (hasRetryRoom(stage)) {
      const retry =
        lane.last.shift() ?? (isOpen && mayRetry(stage, lane) ? lane.retry.shift() : undefined)
      if (retry) return retry
    } else stage.starved.retries.add(lane)
  }
  if (!isOpen || lane.live.size() + lane.imports.size() === 0) return undefined
  if (!hasFirstRoom(stage)) {
    stage.starved.firsts.add(lane)
    return undefined
  }
  return shiftFirst(stage, lane)
}

/** Live messages first; but where they never cease, one turn of many is for what stands behind them. */
const shiftFirst = (stage: Stage, lane: Lane): Chain | undefined => {
  const { limits } = stage
  const mayImport =
    lane.imports.size() > 0 && lane.importing < shareOf(stage, lane, limits.importShare)
  if (mayImport && (lane.passed >= limits.passMax || lane.live.size() === 0)) {
    lane.passed = 0
    return lane.imports.shift()
  }
  if (lane.imports.size() > 0) lane.passed += 1
  return lane.live.shift()
}

const mayRetry = (stage: Stage, lane: Lane): boolean =>
  lane.live.size() === 0 || lane.retries < shareOf(stage, lane, stage.limits.retryShare)

const shareOf = ({ limits }: Stage, lane: Lane, share: number): number =>
  Math.max(1, Math.min(limits.roundsPerLaneMax, limitOf(lane)) * share)

const begin = (stage: Stage, delivery: Delivery): void => {
  tally(stage, delivery, 1)
  delivery.chain.lane.begun += 1
  delivery.chain.busy = true
}

/** The round is over; the chain goes on with what waits. */
export const end = (stage: Stage, delivery: Delivery): void => {
  const { chain } = delivery
  tally(stage, delivery, -1)
  chain.busy = false
  if (delivery.row) endRow(stage, chain.lane)
  const starved = delivery.row ? stage.starved.retries : stage.starved.firsts
  const next = starved.size > 0 ? takeOne(starved) : undefined
  if (next) offer(stage, next)
  makeReady(stage, chain)
  offer(stage, chain.lane)
  dropIdle(chain)
  stage.room.ring()
}

/** What was claimed is running out, and there was more. */
const endRow = ({ desk }: Stage, lane: Lane): void => {
  lane.claimed -= 1
  if (!lane.more || lane.retry.size() > lane.retries) return
  lane.more = false
  desk.claimAt = 0
  desk.bell.ring()
}

const hasReady = (lane: Lane): boolean =>
  lane.live.size() + lane.retry.size() + lane.imports.size() + lane.last.size() > 0

const tally = (stage: Stage, delivery: Delivery, by: 1 | -1): void => {
  const { lane, partition } = delivery.chain
  stage.rounds += by
  lane.rounds += by
  partition.rounds += by
  if (delivery.row) {
    lane.retries += by
    stage.retries += by
  } else if (isBeside(partition)) lane.importing += by
}

/** Forgets all that a lost partition had waiting; rounds in flight end by themselves. */
export const abandon = (stage: Stage, partition: Partition): void => {
  for (const chains of partition.chains.values())
    for (const chain of chains.values()) {
      if (chain.parked > 0) stage.parkedChains -= 1
      for (const delivery of takeWaiting(stage, chain)) if (delivery.row) chain.lane.claimed -= 1
    }
  for (const [destinationId, parked] of partition.parked)
    laneOf(stage, destinationId).parked -= parked
  partition.parked.clear()
  partition.chains.clear()
  partition.already.clear()
  stage.room.ring()
}

/** A row is on its way to Postgres. What left its chain's order is in nobody's way there. */
export const countParked = (stage: Stage, chain: Chain): void => {
  const { partition, lane } = chain
  const kept = chain.of ?? chain
  if (!kept.stray && kept.parked === 0) {
    stage.parkedChains += 1
    kept.headSince = stage.deps.clock().getTime()
  }
  if (!kept.stray) kept.parked += 1
  chain.parking += 1
  chain.parks += 1
  lane.parked += 1
  count(partition.parked, lane.destinationId, 1)
  if (stage.parkedChains > stage.limits.chainsMax) partition.spilled.add(lane.destinationId)
  if (chain.stray) dropIdle(chain)
}

/** A row is gone from Postgres. */
export const unpark = (stage: Stage, chain: Chain): void => {
  const { partition, lane } = chain
  if (partition.lost) return
  const kept = chain.of ?? chain
  if (!kept.stray && kept.parked === 1) stage.parkedChains -= 1
  kept.parked = Math.max(0, kept.parked - 1)
  kept.headSince = stage.deps.clock().getTime()
  lane.parked = Math.max(0, lane.parked - 1)
  count(partition.parked, lane.destinationId, -1)
  if (!partition.parked.has(lane.destinationId)) partition.spilled.delete(lane.destinationId)
  dropIdle(kept)
  if (chain !== kept) dropIdle(chain)
}
