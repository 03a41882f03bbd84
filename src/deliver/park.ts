// Settling, parking and burying: the three ways a delivery ends, each durable before its offset counts.
import { hashToInt } from '../domain/chain.ts'
import type { DeadReason } from '../domain/dead-reason.ts'
import type { Open } from '../domain/tracker.ts'
import { putWork } from './desk.ts'
import { countParked, takeWaiting, unpark } from './lanes.ts'
import { meterDeath } from './meter.ts'
import { settlePairs } from './pairs.ts'
import { addParked, keptBody } from './quota.ts'
import type { Chain, Counters, Delivery, Partition, Stage } from './stage.ts'

export const settle = (delivery: Delivery, outcome: keyof Counters): void => {
  const { partition, lane } = delivery.chain
  // Also of a partition that was lost: what is done is done, should it come back here.
  if (!delivery.open) return
  settleOne(partition, delivery.open, { destinationId: lane.destinationId, outcome })
}

type Settling = { readonly destinationId: number; readonly outcome: keyof Counters }

/**
 * The pairs withheld count when the last one of the rest settles, as the offset does: an offset that is read
 * again is routed again.
 */
export const settleOne = (partition: Partition, open: Open, settling: Settling): void => {
  partition.tracker.settle(open, settling.destinationId)
  settlePairs(partition, { open, outcome: settling.outcome, amount: 1 })
  if (open.left.length > 0 || partition.withheld.size === 0) return
  const amount = partition.withheld.get(open.offset)
  if (amount === undefined) return
  settlePairs(partition, { open, outcome: 'filtered', amount })
  partition.withheld.delete(open.offset)
}

export type Parking = {
  readonly reason: 'temporary' | 'lane_full' | 'behind_parked' | 'breaker_open'
  /** `null`: due as soon as it is the first of its chain. */
  readonly nextAt: number | null
  readonly firstTryAt: number | null
  readonly attempts: number
  readonly finalUrls: readonly string[]
  readonly lastReason: string | null
  readonly lastStatus: number | null
}

export const untried = (reason: Parking['reason']): Parking => ({
  reason,
  nextAt: null,
  firstTryAt: null,
  attempts: 0,
  finalUrls: [],
  lastReason: null,
  lastStatus: null,
})

/** Parks a delivery that came from the log. */
export const park = (stage: Stage, delivery: Delivery, parking: Parking): void => {
  const { chain } = delivery
  const { lane } = chain
  const overtakes = standsBefore(delivery)
  countParked(stage, chain)
  const { nextAt, firstTryAt, ...rest } = parking
  const row = {
    ...sourceOf(delivery),
    ...rest,
    // Coordinates are enough for what was never tried: the log still has it.
    body: parking.reason === 'lane_full' ? null : keptBody(stage, lane, delivery.body),
    nextAt: dateOf(nextAt),
    firstTryAt: dateOf(firstTryAt),
  }
  addParked(stage, lane.destinationId, row.body?.length ?? 0)
  putWork(stage, {
    task: { type: 'park', row, chain, overtakes },
    partition: chain.partition,
    settled: (kept) => {
      chain.parking -= 1
      if (parking.reason === 'breaker_open') chain.lane.mayHold = true
      if (kept) settle(delivery, 'parked')
    },
  })
}

/** Whether later messages of its chain may have been parked already, where that has an order. */
const standsBefore = ({ chain, offset }: Delivery): boolean => {
  if (chain.of !== null) return false
  const overtakes = offset < chain.parkedTo
  chain.parkedTo = Math.max(chain.parkedTo, offset)
  return overtakes
}

/** The head of the chain was parked: what waits behind it follows, in order. */
export const parkWaiting = (
  stage: Stage,
  chain: Chain,
  reason: 'lane_full' | 'behind_parked',
): void => {
  for (const delivery of takeWaiting(stage, chain)) {
    if (delivery.row) putBack(stage, delivery)
    else park(stage, delivery, untried(reason))
  }
}

export type Death = {
  readonly reason: DeadReason
  /** It is of somebody who is not to be heard any more: that it died is kept, and nothing of its body. */
  readonly isForgotten?: boolean
  readonly status: number | null
  readonly attempts: number
  readonly firstTryAt: number | null
}

/** Gives a delivery up, with its reason; replay is offered from `dead`. */
export const bury = (stage: Stage, delivery: Delivery, death: Death): void => {
  const { chain, row } = delivery
  const { partition, lane } = chain
  const firstTryAt = dateOf(death.firstTryAt)
  // What nobody wants any more is no failure, and may be thousands: it is counted.
  const level = death.reason === 'cancelled' ? 'debug' : 'warn'
  stage.deps.logger[level](
    {
      destinationId: lane.destinationId,
      topic: partition.topic,
      partition: partition.partition,
      offset: delivery.offset,
      messageId: delivery.messageId,
      reason: death.reason,
      status: death.status,
      attempts: death.attempts,
    },
    'delivery.died',
  )
  meterDeath(stage.meter, death.reason)
  if (row) {
    putWork(stage, {
      task: { type: 'bury', burial: { id: row.id, ...death, firstTryAt }, chain },
      partition,
      settled: (kept) => kept && unpark(stage, chain),
    })
    return
  }
  putWork(stage, {
    task: {
      type: 'die',
      row: {
        ...{ ...sourceOf(delivery), ...death, firstTryAt },
        body: death.isForgotten ? null : delivery.body,
      },
    },
    partition,
    settled: (kept) =>
      kept && settle(delivery, death.reason === 'cancelled' ? 'cancelled' : 'dead'),
  })
}

/** A claimed row goes back untried: something earlier of its chain stands before it, or we stop. */
export const putBack = (stage: Stage, delivery: Delivery): void => {
  const { chain, row } = delivery
  chain.lane.claimed -= 1
  if (!row) return
  const task = { type: 'back', id: row.id, chain } as const
  putWork(stage, { task, partition: chain.partition, settled: () => undefined })
}

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

const sourceOf = (delivery: Delivery) => ({
  topic: delivery.chain.partition.topic,
  partition: delivery.chain.partition.partition,
  offset: delivery.offset,
  destinationId: delivery.chain.lane.destinationId,
  chain: hashToInt(delivery.chain.hash),
  messageId: delivery.messageId,
  type: delivery.type,
})
