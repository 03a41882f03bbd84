// Takes batches from the log: drops duplicates, decides each message's destinations and body, fills the lanes.
import { hash } from 'node:crypto'
import type { JsonObject, Message, Outbound } from '../domain/message.ts'
import { isFixedPoint, render } from '../domain/payload.ts'
import { takes } from '../domain/routing.ts'
import type { Verdict } from '../duplicate/duplicates.ts'
import type { Batch, Codec, Recorded } from '../log/log.ts'
import { admit } from './admit.ts'
import { putWork } from './desk.ts'
import { chainOf } from './lanes.ts'
import { bury } from './park.ts'
import type { Delivery, Partition, Stage } from './stage.ts'

/** Pending is the brake: it resolves when the whole batch has its place in the lanes or is parked. */
export const takeBatch = async (
  stage: Stage,
  partition: Partition,
  batch: Batch,
): Promise<void> => {
  if (stage.stopping) return stage.drained
  const breath = openBreath(stage.limits.yieldMs)
  const entries = batch.entries
  const took =
    partition.topic === 'outbound'
      ? await takeOutbound(stage, partition, { entries, breath })
      : await takeCalls(stage, partition, { entries, breath, next: batch.next })
  // Stopping, or the partition is gone: what was not taken is read again from the position.
  if (!took) return partition.lost ? undefined : stage.drained
  partition.tracker.see(Number(batch.next))
  partition.tracker.secure(Number(batch.next))
}

type Part = { readonly entries: readonly Recorded[]; readonly breath: Breath }

const takeCalls = async (
  stage: Stage,
  partition: Partition,
  { entries, breath, next }: Part & { readonly next: bigint },
): Promise<boolean> => {
  const messages = await decodeAll(stage.deps.codecs.call, { entries, breath })
  const verdict = await partition.duplicates?.judge(
    messages.map(({ digest, receivedAt }, at) => ({
      offset: (entries[at] as Recorded).offset,
      digest,
      receivedAt,
    })),
  )
  let duplicate = 0n
  let filtered = 0n
  for (const [at, message] of messages.entries()) {
    const entry = entries[at] as Recorded
    const offset = Number(entry.offset)
    if (partition.tracker.isSettled(offset)) partition.already.delete(offset)
    else {
      if (verdict?.duplicate[at]) duplicate += 1n
      else {
        const fanned = fanOut(stage, message)
        if (fanned.destinationIds.length === 0) filtered += 1n
        else if (!(await place(stage, partition, { entry, record: message, ...fanned })))
          return false
      }
    }
    partition.tracker.see(offset + 1)
    if (partition.topic === 'calls.import') await pace(stage, at)
    await breath()
  }
  if (verdict && !(await save(stage, partition, verdict))) return false
  partition.counters.duplicate += duplicate
  partition.counters.filtered += filtered
  stage.deps.logger.debug(
    {
      topic: partition.topic,
      partition: partition.partition,
      next,
      calls: messages.length,
      duplicate,
      filtered,
    },
    'batch.routed',
  )
  return true
}

/** Duplicates are on record before the position may pass them. */
const save = (stage: Stage, partition: Partition, verdict: Verdict): Promise<boolean> =>
  new Promise((resolve) => {
    if (stage.stopping) return resolve(false)
    const settled = (kept: boolean) => {
      if (kept) verdict.accept()
      resolve(kept)
    }
    putWork(stage, { task: { type: 'save', verdict }, partition, settled })
  })

const takeOutbound = async (
  stage: Stage,
  partition: Partition,
  { entries, breath }: Part,
): Promise<boolean> => {
  const records = await decodeAll(stage.deps.codecs.outbound, { entries, breath })
  for (const [at, record] of records.entries()) {
    const entry = entries[at] as Recorded
    const offset = Number(entry.offset)
    if (!partition.tracker.isSettled(offset)) {
      if (isRelayedTwice(partition, record, offset)) partition.counters.duplicate += 1n
      else {
        const body = bufferOf(record.body)
        const destinationIds = [record.destinationId]
        // A receiver that parses and serialises again must come to the bytes that were signed.
        const poisoned = !isFixedPoint(body)
        const placed = { entry, record, body, destinationIds, poisoned }
        if (!(await place(stage, partition, placed))) return false
      }
    }
    partition.tracker.see(offset + 1)
    partition.tracker.secure(offset + 1)
    await breath()
  }
  return true
}

/**
 * A relay that starts again may append again what it had appended. An offset at or below the one that set
 * the mark was judged before: had it been a repetition, it would be settled.
 */
const isRelayedTwice = (partition: Partition, record: Outbound, offset: number): boolean => {
  if (record.shard < 0) return false
  const mark = partition.marks.get(record.shard)
  if (mark && offset <= mark.offset) return false
  if (mark && record.seq <= mark.seq) return true
  partition.marks.set(record.shard, { seq: record.seq, offset })
  return false
}

type Fanned = {
  readonly body: Buffer
  readonly destinationIds: readonly number[]
  /** It cannot be sent: dead at once, so that the partition goes on. */
  readonly poisoned: boolean
}

const nowhere: Fanned = { body: Buffer.alloc(0), destinationIds: [], poisoned: false }

/** Decided once, at fan-out: destinations, integrations, the historical switch and the body's bytes. */
const fanOut = (stage: Stage, message: Message): Fanned => {
  const destinations = stage.deps.live.now().destinationsBySource.get(message.sourceId)
  // A deletion request is an order to the service, not a call to pass on.
  if (!destinations || destinations.length === 0 || message.type === 'delete') return nowhere
  const stored = bufferOf(message.body)
  try {
    const call = JSON.parse(stored.toString('utf8')) as JsonObject
    const taking = destinations.filter((destination) => takes(destination, message, call))
    if (taking.length === 0) return nowhere
    const destinationIds = taking.map(({ id }) => id)
    return { body: render(message, call), destinationIds, poisoned: false }
  } catch {
    // Nobody is told the error: a parser's message quotes the body. The burial names the message.
    const destinationIds = destinations.filter(({ enabled }) => enabled).map(({ id }) => id)
    return { body: stored, destinationIds, poisoned: true }
  }
}

type Placed = Fanned & { readonly entry: Recorded; readonly record: Message | Outbound }

/** Finds room for one message in the lane of each destination that still lacks it. */
const place = async (stage: Stage, partition: Partition, placed: Placed): Promise<boolean> => {
  const { entry, record, body } = placed
  const offset = Number(entry.offset)
  const open = partition.tracker.open(offset, placed.destinationIds)
  if (!open) return true
  const already = partition.already.get(offset)
  partition.already.delete(offset)
  const hashed = hash('sha1', entry.key, 'hex').slice(0, 16)
  for (const destinationId of [...open.left]) {
    if (already?.has(destinationId)) {
      partition.tracker.settle(open, destinationId)
      partition.counters.parked += 1n
      continue
    }
    const chain = chainOf(stage, partition, { destinationId, hash: hashed })
    const { messageId, type } = record
    const delivery: Delivery = { chain, open, row: null, offset, messageId, type, body }
    if (placed.poisoned) {
      bury(stage, delivery, { reason: 'internal', status: null, attempts: 0, firstTryAt: null })
      continue
    }
    const admitted = admit(stage, delivery)
    if (admitted !== true && !(await admitted)) return false
  }
  return true
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const decodeSlice = 128

const decodeAll = async <T>(codec: Codec<T>, { entries, breath }: Part): Promise<readonly T[]> => {
  const records: T[] = []
  for (let at = 0; at < entries.length; at += decodeSlice) {
    const values = entries.slice(at, at + decodeSlice).map(({ value }) => value)
    for (const record of await codec.decode(values)) records.push(record)
    await breath()
  }
  return records
}

/** Imports take their turn when no live message waits, or slowly. */
const pace = async (stage: Stage, at: number): Promise<void> => {
  const { importSlice, importWaitMs } = stage.limits
  if (at % importSlice !== importSlice - 1) return
  const until = performance.now() + importWaitMs
  while (stage.waitingLive > 0 && performance.now() < until && !stage.stopping)
    await stage.room.wait(25)
}

type Breath = () => Promise<void> | undefined

/** Gives the event loop back when it was held for too long. */
const openBreath = (yieldMs: number): Breath => {
  let since = performance.now()
  return () => {
    if (performance.now() - since < yieldMs) return undefined
    return new Promise((resolve) =>
      setImmediate(() => {
        since = performance.now()
        resolve()
      }),
    )
  }
}
