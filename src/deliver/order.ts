// The order of one visitor's messages to one destination: kept, switched off, or suspended when it holds up too much.
import { chainOf, findChain, looseChain } from './chains.ts'
import { putWork } from './desk.ts'
import { enter, takeWaiting } from './lanes.ts'
import type { Chain, Lane, Partition, Stage } from './stage.ts'

type Place = {
  readonly destinationId: number
  readonly hash: string
  readonly offset: number
}

/** Where a message from the log takes its place. */
export const placeIn = (stage: Stage, partition: Partition, at: Place): Chain => {
  const { destinationId, hash, offset } = at
  if (stage.deps.live.now().destinations.get(destinationId)?.order === 'none')
    return looseChain(stage, partition, {
      destinationId,
      hash: hashOfOne(offset),
      offset,
      of: null,
    })
  const chain = chainOf(stage, partition, { destinationId, hash })
  if (chain.parked === 0 && chain.waiting.length === 0) return chain
  if (!isSuspended(stage, chain)) {
    if (!isHoldingUp(stage, chain)) return chain
    suspend(stage, chain)
  }
  return looseChain(stage, partition, { ...at, of: chain })
}

/** What is parked has its offset for a chain of its own: it waits behind nothing. */
const hashOfOne = (offset: number): string => offset.toString(16).padStart(16, '0')

type Arrival = Place & { readonly attempts: number; readonly firstTryAt: Date | null }

/** Where a claimed row takes its place. */
export const placeAgain = (stage: Stage, partition: Partition, at: Arrival): Chain => {
  const { destinationId, hash, offset } = at
  const chain = findChain(stage, partition, { destinationId, hash })
  if (chain.stray) return chain
  const age = stage.deps.clock().getTime() - (at.firstTryAt?.getTime() ?? Number.POSITIVE_INFINITY)
  const isOld = age > stage.limits.headMaxMs && chain.parked > 1
  if (isOld && !isSuspended(stage, chain) && isHealthy(chain.lane)) suspend(stage, chain)
  return isSuspended(stage, chain)
    ? looseChain(stage, partition, { destinationId, hash, offset, of: chain })
    : chain
}

const isSuspended = (stage: Stage, { suspendedUntil }: Chain): boolean =>
  suspendedUntil > 0 && stage.deps.clock().getTime() < suspendedUntil

/** Too many wait, or the first has been waiting for too long, though the destination is well. */
const isHoldingUp = (stage: Stage, { waiting, parked, headSince, lane }: Chain): boolean => {
  const { chainMax, headMaxMs } = stage.limits
  const isLong = waiting.length + parked >= chainMax
  const isOld = parked > 0 && stage.deps.clock().getTime() - headSince > headMaxMs
  return (isLong || isOld) && isHealthy(lane)
}

const isHealthy = ({ target }: Lane): boolean =>
  target?.urls.some(({ health }) => health.state === 'ok' && health.breaker === 'closed') ?? false

/** What waits behind its first goes on by itself, in memory and in Postgres. */
const suspend = (stage: Stage, chain: Chain): void => {
  const { partition, lane, hash } = chain
  const { destinationId } = lane
  chain.suspendedUntil = stage.deps.clock().getTime() + stage.limits.suspendMs
  stage.deps.logger.warn(
    { destinationId, topic: partition.topic, partition: partition.partition, chain: hash },
    'order.suspended',
  )
  stage.meter.orderSuspended += 1
  stage.deps.onOrderSuspended?.(destinationId)
  for (const delivery of takeWaiting(stage, chain)) {
    const { offset } = delivery
    const loose = looseChain(stage, partition, { destinationId, hash, offset, of: chain })
    enter(stage, { ...delivery, chain: loose })
  }
  if (chain.parked > 0)
    putWork(stage, { task: { type: 'free', chain }, partition, settled: () => undefined })
}
