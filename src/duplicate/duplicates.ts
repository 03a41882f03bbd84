// Tells each reader which records of a partition are duplicates, as a pure function of the log.
//
// A record is a duplicate when an earlier offset of its topic-partition holds the same digest with a
// receipt less than 24 h before its own (`windowStart` says what that means for a record whose receipt
// lies hours behind others). Neither wall time nor memory has a say: restarts, re-reads, rollbacks and
// batch boundaries change nothing.
import type { Sql } from '../postgres/sql.ts'
import { confirm } from './confirm.ts'
import { type Chunk, type Judged, packChunks } from './entry.ts'
import type { Remembered } from './remembered.ts'
import { restoreBefore } from './restore.ts'
import { makeRoom } from './seal.ts'
import { deleteHoursBefore, findNext, insertChunks, type PartitionKey } from './store.ts'
import { firstHourKept, hourMs, hourOf, windowStart } from './window.ts'
import { markWithin } from './within.ts'
import { wordsOf } from './words.ts'

export type { Judged } from './entry.ts'

export type Verdict = {
  /** By index of the entries judged. */
  readonly duplicate: readonly boolean[]
  readonly chunks: readonly (PartitionKey & Chunk)[]
  /** Stores what was judged: in the reader's transaction, or before its position moves. */
  save(tx: Sql): Promise<void>
  /** After that commit, or before it where judging the next hears of it. A verdict never accepted leaves no trace in memory. */
  accept(): void
}

export type Duplicates = {
  /**
   * Entries of ascending offsets. One judgement at a time, each accepted before the next. What is accepted before
   * it is stored: `stored` resolves once it is.
   */
  judge(entries: readonly Judged[], stored?: () => Promise<unknown>): Promise<Verdict>
  /** What it holds in memory now. */
  bytes(): number
}

export type DuplicatesOptions = PartitionKey & {
  /** Outside any transaction of the reader's: sealing and confirming must not wait for it. */
  readonly sql: Sql
  /** Half for hours not sealed (about 40 bytes an id), half for filters of sealed ones (2 bytes an id). */
  readonly bytesMax: number
  /** Where the reader would start again now; by default its row in `position`. */
  readonly storedNext?: (sql: Sql) => Promise<bigint | null>
}

/** Saves many partitions' verdicts in one statement. */
export const saveVerdicts = (tx: Sql, verdicts: readonly Verdict[]): Promise<void> =>
  insertChunks(
    tx,
    verdicts.flatMap(({ chunks }) => chunks),
  )

type State = {
  readonly remembered: Remembered
  /** Everything before it is remembered. */
  next: bigint
  /** Where the highest receipt entered each new hour. */
  readonly raised: { readonly offset: bigint; readonly hour: number }[]
  /** The first hour kept when what can be deleted was last looked for. */
  hourChecked: number
}

const raisedMax = 64

export const openDuplicates = async (options: DuplicatesOptions): Promise<Duplicates> => {
  const { sql, bytesMax, reader, topic, partition } = options
  const key = { reader, topic, partition }
  const storedNext = options.storedNext ?? ((from: Sql) => findNext(from, key))
  let state: State | null = null
  return {
    bytes: () => {
      const bytes = state?.remembered.bytes()
      return bytes ? bytes.open + bytes.bloom : 0
    },
    judge: async (entries, stored) => {
      const from = entries[0]?.offset
      if (from === undefined) return nothingJudged
      if (state === null || from < state.next) {
        state = null
        state = await restore({ sql, key }, from)
      }
      const judging = state
      const { remembered } = judging
      await forget({ sql, key, storedNext }, judging)
      const receipts = Float64Array.from(entries, ({ receivedAt }) => receivedAt)
      await makeRoom({ sql, key, remembered, bytesMax, stored }, receipts)
      const words = wordsOf(entries.map(({ digest }) => digest))
      const duplicate = await judgeAll({ sql, remembered, words, receipts }, entries)
      const chunks = packChunks(entries).map((chunk) => ({ ...key, ...chunk }))
      const offsets = new BigInt64Array(entries.length)
      for (let at = 0; at < entries.length; at++) offsets[at] = (entries[at] as Judged).offset
      // A verdict may wait for long to be saved. It names no entry: a digest holds the bytes it was read from.
      return {
        duplicate,
        chunks,
        save: (tx) => insertChunks(tx, chunks),
        accept: () => {
          if (state === judging && from >= judging.next) take(judging, { words, offsets, receipts })
        },
      }
    },
  }
}

const nothingJudged: Verdict = {
  duplicate: [],
  chunks: [],
  save: async () => undefined,
  accept: () => undefined,
}

type Stored = { readonly sql: Sql; readonly key: PartitionKey }

const restore = async (stored: Stored, next: bigint): Promise<State> => {
  const remembered = await restoreBefore(stored, next)
  const hour = hourOf(remembered.high())
  return { remembered, next, raised: [{ offset: next - 1n, hour }], hourChecked: 0 }
}

type Judging = {
  readonly sql: Sql
  readonly remembered: Remembered
  readonly words: Uint32Array
  readonly receipts: Float64Array
}

/** The starts of the entries' windows follow the highest receipt as it was at each of them. */
const judgeAll = async (
  { sql, remembered, words, receipts }: Judging,
  entries: readonly Judged[],
) => {
  let high = remembered.high()
  const starts = entries.map(({ receivedAt }) => {
    high = Math.max(high, receivedAt)
    return windowStart(receivedAt, high)
  })
  const duplicate = starts.map((start, index) => remembered.isOpen(words, index * 4, start))
  const doubts = starts.flatMap((start, index) =>
    duplicate[index]
      ? []
      : remembered
          .candidates(words, index * 4, start)
          .map((segment) => ({ index, start, segment, entry: entries[index] as Judged })),
  )
  for (const index of await confirm(sql, words, doubts)) duplicate[index] = true
  markWithin({ words, receipts, starts }, duplicate)
  return duplicate
}

/** What is remembered of entries, one by one. */
type Noted = {
  readonly words: Uint32Array
  readonly offsets: BigInt64Array
  readonly receipts: Float64Array
}

const take = (state: State, { words, offsets, receipts }: Noted) => {
  const { remembered, raised } = state
  for (let index = 0; index < receipts.length; index++) {
    const receivedAt = receipts[index] as number
    remembered.put(words, index * 4, receivedAt)
    if (hourOf(receivedAt) > hourOf(remembered.high()))
      raised.push({ offset: offsets[index] as bigint, hour: hourOf(receivedAt) })
    remembered.raise(receivedAt)
  }
  state.next = (offsets[offsets.length - 1] as bigint) + 1n
  raised.splice(0, raised.length - raisedMax)
}

type Forgetting = Stored & { readonly storedNext: (sql: Sql) => Promise<bigint | null> }

/** A few hours more on disk cost less than looking every hour. */
const forgetEveryHours = 6

/**
 * Deletes hours that no record from the reader's stored position on can be compared with: a reader
 * that starts again there must find what it found the first time.
 */
const forget = async ({ sql, key, storedNext }: Forgetting, state: State) => {
  const hour = firstHourKept(state.remembered.high())
  if (hour < state.hourChecked + forgetEveryHours) return
  const next = await storedNext(sql)
  const safe = state.raised.findLast(({ offset }) => next !== null && offset < next)
  if (safe) await deleteHoursBefore(sql, key, firstHourKept(safe.hour * hourMs))
  state.hourChecked = hour
}
