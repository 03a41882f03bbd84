// Holding one partition: takes its position over, and turns what is fetched into segments.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gainInTime } from '../gaining.ts'
import type { Batch, Lease, Reader } from '../log/log.ts'
import { placeOf } from '../log/log.ts'
import { gainPosition } from '../postgres/position.ts'
import { lineOf } from './line.ts'
import type { ArchivedTopic } from './name.ts'
import { openSegment, type Segment } from './segment.ts'
import { codecOf, type Lane, type Stage } from './stage.ts'
import { noteTrouble } from './trouble.ts'
import { rollSegment } from './write.ts'

export const gainLane = (stage: Stage, lease: Lease): Promise<Reader> => {
  const { deps, limits, stopping } = stage
  const gaining = { lease, stopping, retryMs: limits.retryMs, logger: deps.logger }
  return gainInTime(gaining, () => gainOnce(stage, lease))
}

const gainOnce = async (stage: Stage, lease: Lease): Promise<Reader> => {
  const { deps, lanes } = stage
  const topic = lease.topic as ArchivedTopic
  const { partition } = lease
  lanes.get(placeOf(lease))?.lose()
  const position = await gainPosition(deps.pool, { reader: 'archive', topic, partition })
  const lane = openLane(stage, { lease, epoch: position.epoch, next: position.next })
  lanes.set(placeOf(lease), lane)
  await startWhereTheLogIs(stage, lane)
  return { from: lane.next, handle: (batch) => handle(stage, lane, batch) }
}

type Opening = Pick<Lane, 'lease' | 'epoch' | 'next'>

const openLane = ({ stopping }: Stage, { lease, epoch, next }: Opening): Lane => {
  const ended = new AbortController()
  let last: Promise<unknown> = Promise.resolve()
  return {
    topic: lease.topic as ArchivedTopic,
    partition: lease.partition,
    lease,
    epoch,
    next,
    segment: null,
    writing: new Set(),
    fedAt: performance.now(),
    over: AbortSignal.any([ended.signal, lease.lost, stopping]),
    lose: () => ended.abort(),
    turn: (work) => {
      const mine = last.then(work)
      last = mine.catch(() => undefined)
      return mine
    },
  }
}

/**
 * A partition that was never archived begins where the log does. Where the log has already let go of
 * what comes next, that is lost: it is told, the index keeps the gap, and the rest is archived.
 */
const startWhereTheLogIs = async (stage: Stage, lane: Lane): Promise<void> => {
  const bounds = await stage.deps.source.bounds(lane.topic)
  const { start, end } = bounds[lane.partition] ?? { start: 0n, end: 0n }
  if (end < lane.next)
    await noteTrouble(
      stage,
      lane,
      new Error(
        `the log ends at offset ${end}, and what is before ${lane.next} is archived already: ` +
          'give a new log another MILLRACE_ARCHIVE',
      ),
    )
  if (lane.next >= start) return
  if (lane.next > 0n)
    await noteTrouble(
      stage,
      lane,
      new Error(
        `the log let go of offsets ${lane.next} to ${start - 1n} before they were archived`,
      ),
    )
  lane.next = start
}

const handle = async (stage: Stage, lane: Lane, batch: Batch): Promise<void> => {
  const { entriesAtOnce, openBytesMax } = stage.limits
  const entries = batch.entries.filter(({ offset }) => offset >= reached(lane))
  for (let at = 0; at < entries.length && !lane.over.aborted; at += entriesAtOnce) {
    const part = entries.slice(at, at + entriesAtOnce)
    await lane.turn(() => take(stage, lane, { ...batch, entries: part }))
    // Outside of the lane's turn: the largest may be another's.
    while (!lane.over.aborted && openBytes(stage) > openBytesMax) await rollLargest(stage)
    await nextTurn()
  }
  // What holds nothing belongs to the segment as well: the next one begins after it.
  await lane.turn(async () => {
    if (lane.segment !== null && lane.segment.next < batch.next) lane.segment.next = batch.next
  })
}

const reached = ({ segment, next }: Lane): bigint => segment?.next ?? next

const take = async (stage: Stage, lane: Lane, { entries }: Batch): Promise<void> => {
  const codec = codecOf(stage.deps.codecs, lane.topic)
  const records = await codec.decode(entries.map(({ value }) => value))
  for (const [at, entry] of entries.entries()) {
    const record = records[at]
    if (record === undefined || lane.over.aborted) return
    lane.segment ??= startSegment(stage, lane)
    lane.segment.add(lineOf(codec, entry, record), entry, record)
    await lane.segment.settle()
    if (lane.segment.bytes >= stage.limits.segmentBytesMax) await rollSegment(stage, lane)
  }
  lane.fedAt = performance.now()
}

const startSegment = ({ deps, limits }: Stage, lane: Lane): Segment =>
  openSegment({
    first: lane.next,
    openedAt: deps.clock().getTime(),
    compression: deps.compression,
    blockBytesMax: limits.blockBytesMax,
  })

const openBytes = ({ lanes }: Stage): number => {
  let bytes = 0
  for (const { segment } of lanes.values()) bytes += segment?.bytes ?? 0
  return bytes
}

const rollLargest = async (stage: Stage): Promise<void> => {
  let largest: Lane | null = null
  for (const lane of stage.lanes.values())
    if ((lane.segment?.bytes ?? 0) > (largest?.segment?.bytes ?? 0)) largest = lane
  const lane = largest
  if (lane === null) return
  await lane.turn(() => rollSegment(stage, lane))
}
