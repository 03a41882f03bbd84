// Lanes: which delivery goes next. Destinations take turns; within a chain one round at a time.
import { openQueue } from './queue.ts'
import { type Chain, count, type Delivery, type Lane, type Partition, type Stage } from './stage.ts'

export const laneOf = (stage: Stage, destinationId: number): Lane => {
  const known = stage.lanes.get(destinationId)
  if (known) return known
  const lane: Lane = {
    destinationId,
    live: openQueue(),
    retry: openQueue(),
    imports: openQueue(),
    waiting: 0,
    bytes: 0,
    rounds: 0,
    retries: 0,
    importing: 0,
    claimed: 0,
    parked: 0,
    inTurn: false,
    deliveredAt: Number.NEGATIVE_INFINITY,
    fullSince: null,
  }
  stage.lanes.set(destinationId, lane)
  return lane
}

/** The chain if it is known, else one that nobody remembers: enough for a row whose order Postgres keeps. */
export const findChain = (stage: Stage, partition: Partition, at: ChainAt): Chain =>
  partition.chains.get(at.destinationId)?.get(at.hash) ??
  newChain(stage, partition, { ...at, stray: true })

export const chainOf = (stage: Stage, partition: Partition, at: ChainAt): Chain => {
  // With too many parked chains to remember, a destination's messages are parked whatever their chain.
  if (partition.spilled.has(at.destinationId)) return findChain(stage, partition, at)
  const chains = partition.chains.get(at.destinationId) ?? new Map<string, Chain>()
  if (chains.size === 0) partition.chains.set(at.destinationId, chains)
  const known = chains.get(at.hash)
  if (known) return known
  const chain = newChain(stage, partition, { ...at, stray: false })
  chains.set(at.hash, chain)
  return chain
}

type NewChain = ChainAt & { readonly stray: boolean }

const newChain = (stage: Stage, partition: Partition, at: NewChain): Chain => ({
  partition,
  stray: at.stray,
  lane: laneOf(stage, at.destinationId),
  hash: at.hash,
  waiting: [],
  busy: false,
  queued: false,
  pinned: false,
  parked: 0,
  parking: 0,
  parks: 0,
})

type ChainAt = { readonly destinationId: number; readonly hash: string }

/** Forgets a chain that has nothing left, in memory or in Postgres. */
export const dropIdle = (chain: Chain): void => {
  if (chain.busy || chain.pinned || chain.waiting.length > 0 || chain.parked > 0) return
  const chains = chain.partition.chains.get(chain.lane.destinationId)
  if (chains?.get(chain.hash) !== chain) return
  chains.delete(chain.hash)
  if (chains.size === 0) chain.partition.chains.delete(chain.lane.destinationId)
}

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
  lane.bytes += bytes
  stage.waiting += by
  stage.bytes += bytes
  if (partition.topic !== 'calls.import') stage.waitingLive += by
}

const makeReady = (stage: Stage, chain: Chain): void => {
  const [next] = chain.waiting
  if (!next || chain.busy || chain.queued) return
  chain.queued = true
  const { lane } = chain
  if (next.row) lane.retry.push(chain)
  else if (chain.partition.topic === 'calls.import') lane.imports.push(chain)
  else lane.live.push(chain)
  takeTurn(stage, lane)
}

const takeTurn = (stage: Stage, lane: Lane): void => {
  if (lane.inTurn || lane.rounds >= stage.limits.roundsPerLaneMax) return
  lane.inTurn = true
  stage.turn.push(lane)
}

/** Starts rounds while there is room for them, one lane after the other. */
export const pump = (stage: Stage, start: (delivery: Delivery) => void): void => {
  while (!stage.stopping && stage.rounds < stage.limits.roundsMax) {
    const lane = stage.turn.shift()
    if (!lane) return
    lane.inTurn = false
    const delivery = nextOf(stage, lane)
    if (!delivery) continue
    takeTurn(stage, lane)
    start(delivery)
  }
}

/** The next delivery of a lane, counted as started; `undefined` when nothing may start. */
const nextOf = (stage: Stage, lane: Lane): Delivery | undefined => {
  if (lane.rounds >= stage.limits.roundsPerLaneMax) return undefined
  for (;;) {
    const chain = shiftChain(stage, lane)
    if (!chain) return undefined
    chain.queued = false
    const delivery = chain.partition.lost || chain.busy ? undefined : chain.waiting.shift()
    if (!delivery) continue
    weigh(stage, delivery, -1)
    begin(stage, delivery)
    return delivery
  }
}

const shiftChain = (stage: Stage, lane: Lane): Chain | undefined => {
  const { roundsPerLaneMax, retryShare, importShare } = stage.limits
  const mayRetry =
    lane.live.size() === 0 || lane.retries < Math.max(1, roundsPerLaneMax * retryShare)
  const retry = mayRetry ? lane.retry.shift() : undefined
  if (retry) return retry
  const live = lane.live.shift()
  if (live) return live
  return lane.importing < Math.max(1, roundsPerLaneMax * importShare)
    ? lane.imports.shift()
    : undefined
}

const begin = (stage: Stage, delivery: Delivery): void => {
  tally(stage, delivery, 1)
  delivery.chain.busy = true
}

/** The round is over; the chain goes on with what waits. */
export const end = (stage: Stage, delivery: Delivery): void => {
  const { chain } = delivery
  tally(stage, delivery, -1)
  chain.busy = false
  if (delivery.row) chain.lane.claimed -= 1
  makeReady(stage, chain)
  if (hasReady(chain.lane)) takeTurn(stage, chain.lane)
  dropIdle(chain)
  stage.room.ring()
}

const hasReady = (lane: Lane): boolean =>
  lane.live.size() + lane.retry.size() + lane.imports.size() > 0

const tally = (stage: Stage, delivery: Delivery, by: 1 | -1): void => {
  const { lane, partition } = delivery.chain
  stage.rounds += by
  lane.rounds += by
  partition.rounds += by
  if (delivery.row) lane.retries += by
  else if (partition.topic === 'calls.import') lane.importing += by
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

/** A row is on its way to Postgres. */
export const countParked = (stage: Stage, chain: Chain): void => {
  const { partition, lane } = chain
  if (!chain.stray && chain.parked === 0) stage.parkedChains += 1
  chain.parked += 1
  chain.parking += 1
  chain.parks += 1
  lane.parked += 1
  count(partition.parked, lane.destinationId, 1)
  if (stage.parkedChains > stage.limits.chainsMax) partition.spilled.add(lane.destinationId)
}

/** A row is gone from Postgres. */
export const unpark = (stage: Stage, chain: Chain): void => {
  const { partition, lane } = chain
  if (partition.lost) return
  if (!chain.stray && chain.parked === 1) stage.parkedChains -= 1
  chain.parked = Math.max(0, chain.parked - 1)
  lane.parked = Math.max(0, lane.parked - 1)
  count(partition.parked, lane.destinationId, -1)
  if (!partition.parked.has(lane.destinationId)) partition.spilled.delete(lane.destinationId)
  dropIdle(chain)
}
