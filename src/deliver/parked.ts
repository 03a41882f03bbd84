// What a partition that is gained has parked: rows by destination, and chains one by one while there is room for them.
import { hashOf } from '../domain/chain.ts'
import { countParked, loadChains, type ParkedChain } from './chain-store.ts'
import { chainOf, laneOf } from './chains.ts'
import { abandon } from './lanes.ts'
import type { Partition, Stage } from './stage.ts'

/** Failing half-way, or lost meanwhile, nothing of it is left: it is counted again by who gains it next. */
export const loadParked = async (stage: Stage, partition: Partition): Promise<void> => {
  try {
    await countRows(stage, partition)
    if (partition.parked.size > 0) await rememberChains(stage, partition)
    partition.lease.lost.throwIfAborted()
  } catch (error) {
    abandon(stage, partition)
    throw error
  }
}

const countRows = async (stage: Stage, partition: Partition): Promise<void> => {
  for (const { destinationId, parked } of await countParked(stage.deps.pool, partition)) {
    partition.parked.set(destinationId, parked)
    const lane = laneOf(stage, destinationId)
    lane.parked += parked
    lane.mayHold = true
  }
}

const rememberChains = async (stage: Stage, partition: Partition): Promise<void> => {
  const { limits, deps } = stage
  const { destinations } = deps.live.now()
  // Where order is switched off every row is a chain of its own: nothing to remember.
  const without = [...destinations.values()].filter(({ order }) => order === 'none')
  const asked = { limit: limits.chainsPage, without: without.map(({ id }) => id) }
  let after: ParkedChain | null = null
  do {
    const page: readonly ParkedChain[] = await loadChains(deps.pool, partition, { ...asked, after })
    // Nobody may need them any more.
    partition.lease.lost.throwIfAborted()
    if (stage.parkedChains + page.length > limits.chainsMax) {
      spill(stage, partition)
      return
    }
    for (const chain of page) remember(stage, partition, chain)
    after = page.length < limits.chainsPage ? null : (page.at(-1) ?? null)
  } while (after)
}

/** As long as nobody knows better: how old its first is shows when that one is claimed. */
const remember = (stage: Stage, partition: Partition, loaded: ParkedChain): void => {
  const { destinationId, chain, parked } = loaded
  const headSince = stage.deps.clock().getTime()
  Object.assign(chainOf(stage, partition, { destinationId, hash: hashOf(chain) }), {
    parked,
    headSince,
  })
  stage.parkedChains += 1
}

/** Too many to tell apart: everything of its destinations is parked. */
const spill = (stage: Stage, partition: Partition): void => {
  for (const chains of partition.chains.values()) stage.parkedChains -= chains.size
  partition.chains.clear()
  for (const destinationId of partition.parked.keys()) partition.spilled.add(destinationId)
}
