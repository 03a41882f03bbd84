// Lanes and chains by their names: made when first needed, forgotten when nothing is left of them.
import { openQueue } from './queue.ts'
import type { Chain, Lane, Partition, Stage } from './stage.ts'

export const laneOf = (stage: Stage, destinationId: number): Lane => {
  const known = stage.lanes.get(destinationId)
  if (known) return known
  const lane: Lane = {
    destinationId,
    live: openQueue(),
    retry: openQueue(),
    imports: openQueue(),
    last: openQueue(),
    target: null,
    waiting: 0,
    passed: 0,
    replaying: 0,
    replayFullSince: null,
    bytes: 0,
    rounds: 0,
    retries: 0,
    importing: 0,
    claimed: 0,
    parked: 0,
    mayHold: false,
    more: false,
    askAt: 0,
    inTurn: false,
    deliveredAt: Number.NEGATIVE_INFINITY,
    begun: 0,
    full: null,
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

/** For one message alone: it waits for nothing and nothing waits for it. `of`: whose order it left. */
export const looseChain = (
  stage: Stage,
  partition: Partition,
  at: ChainAt & { readonly of: Chain | null; readonly offset: number },
): Chain => {
  const { destinationId, offset, of } = at
  const key = `loose ${offset}`
  const chain = { ...newChain(stage, partition, { ...at, stray: true }), key, of }
  const chains = partition.chains.get(destinationId) ?? new Map<string, Chain>()
  if (chains.size === 0) partition.chains.set(destinationId, chains)
  chains.set(key, chain)
  return chain
}

type NewChain = ChainAt & { readonly stray: boolean }

const newChain = (stage: Stage, partition: Partition, at: NewChain): Chain => ({
  partition,
  stray: at.stray,
  lane: laneOf(stage, at.destinationId),
  key: at.hash,
  hash: at.hash,
  of: null,
  waiting: [],
  busy: false,
  queued: false,
  pinned: false,
  parked: 0,
  parking: 0,
  parkedTo: partition.alreadyTo,
  parks: 0,
  headSince: 0,
  suspendedUntil: 0,
})

type ChainAt = { readonly destinationId: number; readonly hash: string }

/** Forgets a chain that has nothing left, in memory or in Postgres. */
export const dropIdle = (chain: Chain): void => {
  if (chain.busy || chain.pinned || chain.waiting.length > 0 || chain.parked > 0) return
  const chains = chain.partition.chains.get(chain.lane.destinationId)
  if (chains?.get(chain.key) !== chain) return
  chains.delete(chain.key)
  if (chains.size === 0) chain.partition.chains.delete(chain.lane.destinationId)
}
