// Records the duplicates met in what was read, before its position may pass. Beside the desk, and without a lock:
// what is read for those who are well must not wait for what becomes of the messages of those who are not.
import type { Verdict } from '../duplicate/duplicates.ts'
import { insertOwnedChunks } from '../duplicate/store.ts'
import { placeOf } from '../log/log.ts'
import { persist } from './persist.ts'
import { lose } from './positions.ts'
import type { Partition, Stage } from './stage.ts'

type Save = {
  readonly verdict: Verdict
  readonly partition: Partition
  readonly settled: (isKept: boolean) => void
}

/** One of each partition at most: its next batch is judged after that. */
export type Saver = {
  waiting: Save[]
  writing: Promise<void> | null
  /** Since when, in real time, Postgres does not take what waits here; `null`: it does, or nothing waits. */
  failingSince: number | null
}

export const openSaver = (): Saver => ({ waiting: [], writing: null, failingSince: null })

/** Whether it was recorded; `false`: the partition has another owner, or we stop. */
export const saveVerdict = (
  stage: Stage,
  partition: Partition,
  verdict: Verdict,
): Promise<boolean> =>
  new Promise((settled) => {
    if (stage.stopping) return settled(false)
    const { saver } = stage
    partition.saving += 1
    saver.waiting.push({ verdict, partition, settled })
    saver.writing ??= writeAll(stage)
  })

/** What waits while one is written goes with the next. */
const writeAll = async (stage: Stage): Promise<void> => {
  const { saver } = stage
  while (saver.waiting.length > 0) await writeSome(stage, saver.waiting.splice(0))
  saver.writing = null
  saver.failingSince = null
}

const writeSome = async (stage: Stage, saves: readonly Save[]): Promise<void> => {
  const ours = await record(stage, saves)
  for (const { verdict, partition, settled } of saves) {
    const isKept = ours?.has(partition) ?? false
    if (isKept) verdict.accept()
    else if (ours) lose(stage, partition)
    partition.saving -= 1
    settled(isKept)
  }
  stage.room.ring()
}

/** The partitions that are still ours; `null`: nothing was recorded, and stays unsettled in the log. */
const record = async (
  stage: Stage,
  saves: readonly Save[],
): Promise<ReadonlySet<Partition> | null> => {
  const isOver = () => performance.now() > stage.giveUpAt
  try {
    return await persist(stage, { what: 'duplicates', isOver }, () => recordOnce(stage, saves))
  } catch (error) {
    if (!isOver()) stage.fail(error)
    return null
  }
}

/** Done again where its answer was lost, it records the same once more, which changes nothing. */
const recordOnce = async (
  { saver, deps }: Stage,
  saves: readonly Save[],
): Promise<ReadonlySet<Partition>> => {
  const held = saves.filter(({ partition }) => !partition.lost)
  const chunks = held.flatMap(({ verdict }) => verdict.chunks)
  const owned = held.map(({ partition: { topic, partition, epoch } }) => {
    return { reader: 'deliver', topic, partition, epoch }
  })
  if (held.length === 0) return new Set()
  try {
    const rows = await insertOwnedChunks(deps.pool, chunks, owned)
    saver.failingSince = null
    const places = new Set(rows.map(placeOf))
    return new Set(held.map(({ partition }) => partition).filter((one) => places.has(placeOf(one))))
  } catch (error) {
    saver.failingSince ??= performance.now()
    throw error
  }
}
