// Holds what may not be sent at present: parked until a URL may be asked again, or for one last try.
import { lastTryAt } from '../domain/retry.ts'
import { putWork } from './desk.ts'
import { takeWaiting } from './lanes.ts'
import { park, parkWaiting, untried } from './park.ts'
import type { Chain, Delivery, Lane, Row, Stage } from './stage.ts'

/** No URL of its destination may be asked: no try, and what waits behind it waits on. */
export const hold = (stage: Stage, delivery: Delivery): void => {
  const { row, chain } = delivery
  if (row) {
    const from = row.firstTryAt ?? row.parkedAt
    holdRow(stage, delivery, {
      row,
      nextAt: lastTryAt(from, stage.random()),
      reason: 'breaker_open',
    })
  } else {
    const nextAt = lastTryAt(stage.deps.clock().getTime(), stage.random())
    park(stage, delivery, { ...untried('breaker_open'), nextAt })
  }
  parkWaiting(stage, chain, 'behind_parked')
}

type HoldingRow = {
  readonly row: Row
  readonly nextAt: number
  /** `null`: for the reason it was parked for. */
  readonly reason: 'breaker_open' | null
}

const soonMs = 1_000

/** The URLs it may still go to have no room: its place in the lane is for others meanwhile. */
export const holdShortly = (stage: Stage, delivery: Delivery): void => {
  const { row } = delivery
  const nextAt = stage.deps.clock().getTime() + soonMs
  if (row) holdRow(stage, delivery, { row, nextAt, reason: null })
  else hold(stage, delivery)
}

const holdRow = (stage: Stage, { chain }: Delivery, { row, nextAt, reason }: HoldingRow): void => {
  const { lane, partition } = chain
  putWork(stage, {
    task: { type: 'hold', holding: { id: row.id, nextAt: new Date(nextAt), reason }, chain },
    partition,
    settled: () => {
      // After the commit: a search before it cannot have seen the row.
      lane.mayHold = true
    },
  })
}

/** A lane was shut: what waits in it is held at once, so that it is in nobody's way. Last tries stay. */
export const shed = (stage: Stage, lane: Lane): void => {
  for (const partition of stage.partitions.values()) {
    if (partition.lost) continue
    for (const chain of [...(partition.chains.get(lane.destinationId)?.values() ?? [])])
      shedChain(stage, chain)
  }
  for (const queue of [lane.retry, lane.live, lane.imports])
    for (let chain = queue.shift(); chain; chain = queue.shift()) {
      chain.queued = false
      shedChain(stage, chain)
    }
}

const shedChain = (stage: Stage, chain: Chain): void => {
  const [first] = chain.waiting
  if (!first || first.row?.isLast) return
  // Behind a round in flight: it is parked with what that round comes to.
  if (chain.busy) return
  const [head, ...others] = takeWaiting(stage, chain)
  if (!head) return
  for (const delivery of [head, ...others]) if (delivery.row) chain.lane.claimed -= 1
  hold(stage, head)
  for (const other of others) {
    if (other.row) hold(stage, other)
    else park(stage, other, untried('behind_parked'))
  }
}
