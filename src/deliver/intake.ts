// Takes batches from the log: drops duplicates, decides each message's destinations and body, fills the lanes.
import type { Message, Outbound } from '../domain/message.ts'
import { isFixedPoint } from '../domain/payload.ts'
import type { Verdict } from '../duplicate/duplicates.ts'
import type { Batch, Codec, Recorded } from '../log/log.ts'
import type { Breath } from './breath.ts'
import { bufferOf, fanOne, fanOut } from './fan-out.ts'
import { isMadeInVain } from './forgotten.ts'
import { countSettled, rememberPairs } from './pairs.ts'
import { persist } from './persist.ts'
import { place } from './place.ts'
import { saveVerdict } from './saver.ts'
import { isMade, type Partition, type Stage } from './stage.ts'
import { openTaken, type Unowed } from './taken.ts'
import { openWithheldTally, type WithheldTally } from './withheld.ts'

/** Pending is the brake: it resolves when the whole batch has its place in the lanes or is parked. */
export const takeBatch = async (
  stage: Stage,
  partition: Partition,
  batch: Batch,
): Promise<void> => {
  if (stage.stopping) return stage.drained
  const breath = stage.breaths.open(stage.limits.yieldMs)
  const take = isMade(partition) ? takeOutbound : takeCalls
  for (const { entries, next } of slicesOf(batch, stage.limits.intakeSlice)) {
    // Stopping, or the partition is gone: what was not taken is read again from the position.
    if (!(await take(stage, partition, { entries, breath, next })))
      return partition.lost ? undefined : stage.drained
    partition.tracker.see(Number(next))
    partition.tracker.secure(Number(next))
    rememberPairs(partition, Number(next))
  }
}

type Slice = { readonly entries: readonly Recorded[]; readonly next: bigint }

/** A crash repeats the slice that is being taken: the position remembers what is settled of those before. */
const slicesOf = (batch: Batch, size: number): readonly Slice[] => {
  const slices: Slice[] = []
  for (let at = 0; at < batch.entries.length || at === 0; at += size) {
    const after = batch.entries[at + size]
    slices.push({
      entries: batch.entries.slice(at, at + size),
      next: after ? after.offset : batch.next,
    })
  }
  return slices
}

type Part = Slice & { readonly breath: Breath }

const takeCalls = async (
  stage: Stage,
  partition: Partition,
  { entries, breath, next }: Part,
): Promise<boolean> => {
  const messages = await decodeAll(stage.deps.codecs.call, { entries, breath })
  const verdict = await judge(stage, partition, { entries, messages })
  if (verdict === 'over') return false
  const taken = openTaken(partition)
  // Recorded while its messages are taken: it must be before the position may pass them.
  const saved = verdict
    ? saveVerdict(stage, partition, verdict).then(taken.saved)
    : taken.saved(true)
  // Of the first ones nothing is sent before: until then a crash repeats all of it, however long that takes.
  if (!partition.isRecording && !(await saved)) return false
  partition.isRecording = true
  const withheld = openWithheldTally()
  for (let at = 0; at < messages.length; at += 1) {
    const message = messages[at] as Message
    const entry = entries[at] as Recorded
    const call = { entry, message, withheld, isDuplicate: verdict?.duplicate[at] ?? false }
    // Waiting where there is nothing to wait for would cost a turn of the queue for each call.
    const taking = takeCall(stage, partition, call)
    const unowed = taking instanceof Promise ? await taking : taking
    if (!unowed) return false
    taken.see(Number(entry.offset) + 1, unowed)
    if (partition.topic === 'calls.import') await pace(stage, at)
    const pause = breath()
    if (pause !== undefined) await pause
  }
  if (!(await saved)) return false
  withheld.count(stage.deps.pipeline)
  stage.deps.logger.debug(
    {
      topic: partition.topic,
      partition: partition.partition,
      next,
      calls: messages.length,
      duplicate: taken.duplicate(),
      filtered: withheld.pairs(),
    },
    'batch.routed',
  )
  return true
}

type Call = {
  readonly entry: Recorded
  readonly message: Message
  readonly withheld: WithheldTally
  readonly isDuplicate: boolean
}

/** What it owes nobody; `null`: the partition is gone. */
const takeCall = (
  stage: Stage,
  partition: Partition,
  { entry, message, withheld, isDuplicate }: Call,
): Unowed | null | Promise<Unowed | null> => {
  const offset = Number(entry.offset)
  if (partition.tracker.isSettled(offset)) {
    partition.already.delete(offset)
    return owed
  }
  if (isDuplicate) return { duplicate: 1, filtered: 0 }
  const fanned = fanOut(stage, message)
  if (fanned.withheld.length > 0) withheld.add(message, fanned)
  if (fanned.destinationIds.length === 0) return { duplicate: 0, filtered: fanned.withheld.length }
  const placed = place(stage, partition, { entry, record: message, fanned })
  return placed === true ? owed : placed.then((isPlaced) => (isPlaced ? owed : null))
}

const owed: Unowed = { duplicate: 0, filtered: 0 }

type Judging = { readonly entries: readonly Recorded[]; readonly messages: readonly Message[] }

const judge = async (
  stage: Stage,
  partition: Partition,
  { entries, messages }: Judging,
): Promise<Verdict | 'over' | undefined> => {
  const { duplicates } = partition
  if (!duplicates) return undefined
  const judged = messages.map(({ digest, receivedAt }, at) => ({
    offset: (entries[at] as Recorded).offset,
    digest,
    receivedAt,
  }))
  const isOver = () => stage.stopping || partition.lost
  try {
    return await persist(stage, { what: 'duplicates', isOver }, () => duplicates.judge(judged))
  } catch (error) {
    if (isOver()) return 'over'
    throw error
  }
}

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
      if (isRelayedTwice(partition, record, offset)) countSettled(partition, 'duplicate', 1)
      else if (isMadeInVain(stage, record, entry.key)) countSettled(partition, 'suppressed', 1)
      else {
        const body = bufferOf(record.body)
        // A receiver that parses and serialises again must come to the bytes that were signed.
        const fanned = fanOne(record.destinationId, body, !isFixedPoint(body))
        // A replayed call came long ago; how late it is counts from when it is read here.
        const late =
          partition.topic === 'outbound.replay'
            ? { ...record, receivedAt: stage.deps.clock().getTime() }
            : record
        if (!(await place(stage, partition, { entry, record: late, fanned }))) return false
      }
    }
    partition.tracker.see(offset + 1)
    partition.tracker.secure(offset + 1)
    rememberPairs(partition, offset + 1)
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

const decodeSlice = 128

const decodeAll = async <T>(
  codec: Codec<T>,
  { entries, breath }: Pick<Part, 'entries' | 'breath'>,
): Promise<readonly T[]> => {
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
