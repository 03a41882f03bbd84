// Gaining a partition: takes its position over and turns fetched batches into queued pieces.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isOrder } from '../domain/erasure.ts'
import type { Message } from '../domain/message.ts'
import { openDuplicates } from '../duplicate/duplicates.ts'
import { gainInTime } from '../gaining.ts'
import type { Batch, Codec, Lease, Reader, Recorded, Source } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Lane, LaneQueue, Piece } from './lanes.ts'
import type { ProjectLimits } from './limits.ts'
import { readFoldedState } from './store.ts'

type LaneDeps = {
  readonly source: Source
  readonly codec: Codec<Message>
  readonly pool: Pool
  readonly queue: LaneQueue
  readonly limits: ProjectLimits
  readonly logger: Logger
  /** Aborts when the stage stops. */
  readonly stopping: AbortSignal
}

/** `lanes` holds the last lane of each partition; an earlier one of the same partition is lost. */
export const gainLane = (deps: LaneDeps, lanes: Map<string, Lane>, lease: Lease): Promise<Reader> =>
  gainInTime({ ...deps, lease, retryMs: deps.limits.retryMs }, () => gainOnce(deps, lanes, lease))

const gainOnce = async (
  deps: LaneDeps,
  lanes: Map<string, Lane>,
  lease: Lease,
): Promise<Reader> => {
  const { topic, partition } = lease
  const name = `${topic}/${partition}`
  lanes.get(name)?.lose()
  const { pool, limits } = deps
  const position = await gainPosition(pool, { reader: 'project', topic, partition })
  const duplicates = await openDuplicates({
    sql: pool,
    reader: 'project',
    topic,
    partition,
    bytesMax: limits.duplicateBytesMax,
  })
  const ended = new AbortController()
  const lane: Lane = {
    lease,
    epoch: position.epoch,
    duplicates,
    next: position.next,
    folded: readFoldedState(position.state),
    get lost() {
      return ended.signal.aborted || lease.lost.aborted
    },
    lose: () => ended.abort(),
    commit: committer(lease, () => lane.next),
  }
  lanes.set(name, lane)
  const from = await firstWanted(deps.source, lease, position.next)
  return { from, handle: (batch) => handle(deps, lane, batch) }
}

/** A partition never read before starts where the log does. */
const firstWanted = async (source: Source, lease: Lease, next: bigint): Promise<bigint> => {
  const committed = lease.committed ?? 0n
  if (next > 0n || committed > 0n) return next > committed ? next : committed
  const bounds = await source.bounds(lease.topic)
  return bounds[lease.partition]?.start ?? 0n
}

/** One commit on its way at a time, always of the newest position. */
const committer = (lease: Lease, next: () => bigint) => {
  let busy = false
  let sent: bigint | null = null
  const commit = (): void => {
    if (busy || sent === next()) return
    busy = true
    sent = next()
    // A hint only: a failed one is made good by the next, and the lease tells when it is lost.
    lease.commit(sent).then(
      () => {
        busy = false
        commit()
      },
      () => {
        busy = false
      },
    )
  }
  return commit
}

const decodeAtOnce = 256

const handle = async (deps: LaneDeps, lane: Lane, batch: Batch): Promise<void> => {
  const { queue, limits } = deps
  const entries = batch.entries.filter(({ offset }) => offset >= lane.next)
  for (let start = 0; start < entries.length; start += limits.batchCallsMax) {
    if (lane.lost || deps.stopping.aborted) break
    const part = entries.slice(start, start + limits.batchCallsMax)
    const next = entries[start + part.length]?.offset ?? batch.next
    for (const piece of piecesOf(lane, await decodeCalls(deps.codec, part), next))
      await queue.put(piece)
  }
  if (entries.length === 0 && batch.next > lane.next)
    await queue.put({ lane, next: batch.next, calls: [] })
}

type Calls = Piece['calls']

/** Runs of orders to erase are pieces of their own. */
export const piecesOf = (lane: Lane, calls: Calls, end: bigint): readonly Piece[] => {
  const cuts = calls.flatMap(({ message }, at) => {
    const before = calls[at - 1]
    return before !== undefined && isOrder(before.message) !== isOrder(message) ? [at] : []
  })
  return [0, ...cuts].map((from, at) => {
    const until = cuts[at] ?? calls.length
    const part = calls.slice(from, until)
    const orders = part[0] !== undefined && isOrder(part[0].message)
    return { lane, next: calls[until]?.offset ?? end, calls: part, orders }
  })
}

export const decodeCalls = async (codec: Codec<Message>, entries: readonly Recorded[]) => {
  const calls: { offset: bigint; message: Message }[] = []
  for (let start = 0; start < entries.length; start += decodeAtOnce) {
    const part = entries.slice(start, start + decodeAtOnce)
    const messages = await codec.decode(part.map(({ value }) => value))
    for (const [at, { offset }] of part.entries())
      calls.push({ offset, message: messages[at] as Message })
    await nextTurn()
  }
  return calls
}
