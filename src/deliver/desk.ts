// The desk's tray: work that must be in Postgres before an offset counts as settled, in order, bounded.
import { hashToInt } from '../domain/chain.ts'
import type { ChainKey } from './chain-store.ts'
import type { Burial, DeadRow } from './dead-store.ts'
import type { Holding } from './hold-store.ts'
import type { DeliverLimits } from './limits.ts'
import { openQueue, type Queue } from './queue.ts'
import { openSignal, type Signal } from './signal.ts'
import type { Chain, Lane, Partition, Stage } from './stage.ts'
import type { ParkRow, Retry } from './store.ts'

export type Task =
  | {
      readonly type: 'park'
      readonly row: ParkRow
      readonly chain: Chain
      /** Rows of its chain that come after it may be due. */
      readonly overtakes: boolean
    }
  | { readonly type: 'die'; readonly row: DeadRow }
  | { readonly type: 'delivered'; readonly id: bigint; readonly chain: Chain }
  | { readonly type: 'bury'; readonly burial: Burial; readonly chain: Chain }
  | { readonly type: 'retry'; readonly retry: Retry }
  | { readonly type: 'free'; readonly chain: Chain }
  | { readonly type: 'hold'; readonly holding: Holding; readonly chain: Chain }
  | { readonly type: 'back'; readonly id: bigint; readonly chain: Chain }

export type Work = {
  readonly task: Task
  readonly partition: Partition
  /** After the commit: whether it was done, or the partition or the lease was no longer ours. */
  readonly settled: (kept: boolean) => void
}

export type Desk = {
  readonly queue: Queue<Work>
  /** What became of claimed rows: it takes turns with the rest, so that what others park holds up no lease. */
  readonly rows: Queue<Work>
  readonly bell: Signal
  /** Work not committed yet, and its bodies. */
  waiting: number
  bytes: number
  /** Of it, what became of claimed rows. */
  claimed: number
  /** Real time of the next look for due rows; 0 is at once. */
  claimAt: number
  /** Lanes of which the claim being committed found no more held rows. */
  emptied: Lane[]
  /** Which of the lanes with parked rows is first in the next claim. */
  claimTurn: number
  /** The last claim says that there is more. */
  more: boolean
  /** More is waiting than may: intake is held back until half of it is done. */
  full: boolean
  /** Since when, in real time, Postgres takes nothing; `null`: it does. */
  failingSince: number | null
  /** The next transaction sends dead messages again; the recovery it came to last. */
  recovers: boolean
  recoveryId: number
}

export const openDesk = (): Desk => ({
  queue: openQueue(),
  rows: openQueue(),
  bell: openSignal(),
  waiting: 0,
  bytes: 0,
  claimed: 0,
  claimAt: 0,
  claimTurn: 0,
  more: false,
  full: false,
  failingSince: null,
  emptied: [],
  recovers: false,
  recoveryId: 0,
})

export const putWork = (stage: Stage, work: Work): void => {
  const { desk } = stage
  queueFor(desk, work.task).push(work)
  weigh(stage, work, 1)
  desk.bell.ring()
}

/** A row that is put back follows the park that sent it there. */
const queueFor = ({ rows, queue }: Desk, task: Task): Queue<Work> =>
  isOfRow(task) && task.type !== 'back' ? rows : queue

type Batch = Pick<DeliverLimits, 'deskBatchMax' | 'deskBatchBytesMax'>

/** What is committed next, in one transaction. */
export const takeWork = (
  desk: Pick<Desk, 'rows' | 'queue'>,
  { deskBatchMax, deskBatchBytesMax }: Batch,
): readonly Work[] => {
  const taken: Work[] = []
  let bytes = 0
  while (taken.length < deskBatchMax && bytes < deskBatchBytesMax) {
    const work = nextWork(desk, taken.length)
    if (!work) break
    taken.push(work)
    bytes += bytesOf(work)
  }
  return taken
}

/** Of what became of claimed rows and of the rest, in turn; `undefined`: nothing waits. */
const nextWork = (
  { rows, queue }: Pick<Desk, 'rows' | 'queue'>,
  taken: number,
): Work | undefined => {
  const [first, second] = taken % 2 === 0 ? [rows, queue] : [queue, rows]
  return first.shift() ?? second.shift()
}

export const hasWork = ({ rows, queue }: Desk): boolean => rows.size() + queue.size() > 0

/** What is to be parked waits a little for more of its kind; what became of a claimed row does not: others wait for it. */
export const mayGather = ({ desk, limits }: Stage): boolean =>
  desk.claimed === 0 &&
  desk.claimAt > 0 &&
  desk.waiting < limits.deskBatchMax &&
  desk.bytes < limits.deskBatchBytesMax

/** It is committed, or nobody's any more. */
export const takeOff = (stage: Stage, work: Work): void => weigh(stage, work, -1)

const weigh = ({ desk }: Stage, work: Work, by: 1 | -1): void => {
  desk.waiting += by
  desk.bytes += by * bytesOf(work)
  if (isOfRow(work.task)) desk.claimed += by
}

const isOfRow = ({ type }: Task): boolean =>
  type === 'delivered' || type === 'bury' || type === 'retry' || type === 'hold' || type === 'back'

/**
 * Rows are settled under a lease: where they come back faster than Postgres takes what became of them,
 * leases would end, and what was delivered be sent again.
 */
export const isBehind = ({ desk, limits }: Stage): boolean => desk.claimed >= limits.claimMax

/** Once full it stays so until half is free: intake must not stop and go with every transaction. */
export const isDeskFull = ({ desk, limits }: Stage): boolean => {
  const share = desk.full ? resumeShare : 1
  desk.full = desk.waiting >= limits.deskMax * share || desk.bytes >= limits.deskBytesMax * share
  return desk.full
}

const resumeShare = 0.5

export const bytesOf = ({ task }: Work): number => {
  if (task.type === 'park' || task.type === 'die') return task.row.body?.length ?? 0
  return task.type === 'retry' ? (task.retry.body?.length ?? 0) : 0
}

export const chainKeyOf = (chain: Chain): ChainKey => ({
  topic: chain.partition.topic,
  partition: chain.partition.partition,
  destinationId: chain.lane.destinationId,
  chain: hashToInt(chain.hash),
})
