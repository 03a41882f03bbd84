// Feeds the readers of one membership: fetches for all that have room in one query, hands each
// partition one batch at a time, keeps one more ready where memory allows.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Fault } from '../fault.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Batch, Lease, Reader } from './log.ts'
import { chunkBytesMax } from './postgres-chunk.ts'
import { type Cursor, type Fetched, fetchChunks } from './postgres-fetch.ts'
import type { Signal } from './postgres-wake.ts'
import { within } from './within.ts'

/** A partition this member holds. */
export type Held = {
  readonly lease: Lease
  readonly abort: AbortController
  /** `null` until `gained` has answered. */
  reader: Reader | null
  cursor: Cursor
  /** Whether there may be something at the cursor. */
  news: boolean
  /** What was fetched last was not all there is. */
  isBehind: boolean
  queued: Batch | null
  handling: Promise<void> | null
  /** To be given back: gets no more batches. */
  releasing: boolean
}

export type FeedDeps = {
  readonly pool: Pool
  readonly logger: Logger | undefined
  readonly bytesMax: number
  /** Without a notification, looks again after this long. */
  readonly pollMs: number
  readonly held: () => readonly Held[]
  readonly signal: Signal
  readonly die: (error: unknown) => void
  /** Aborts when nothing is to be handed out any more. */
  readonly over: AbortSignal
}

const fetchLimits = {
  /** Of one query over all partitions. */
  bytesMax: 4_194_304,
  /** From one query to the next while nobody is behind: many small ones cost everybody more than they bring. */
  everyMs: 20,
  retryMs: 500,
  /** A connection that swallows a query must not stop the reading for ever. */
  timeoutMs: 5_000,
} as const

export const feed = async (deps: FeedDeps): Promise<void> => {
  const { signal, over } = deps
  let began = Number.NEGATIVE_INFINITY
  while (!over.aborted) {
    const held = deps.held()
    const early = began + fetchLimits.everyMs - performance.now()
    if (early > 0 && !held.some(({ isBehind }) => isBehind)) {
      await sleep(early)
      continue
    }
    const share = shareOf(deps.bytesMax, held.length)
    const wanted = held.filter((each) => hasRoom(each, share.prefetch))
    if (wanted.length === 0) {
      if ((await signal.wait(deps.pollMs)) === 'waited') lookAgain(deps.held())
      continue
    }
    began = performance.now()
    // Before the query: news that comes while it runs must not be forgotten.
    for (const each of wanted) each.news = false
    const bytesMax = Math.min(share.bytes, fetchLimits.bytesMax / wanted.length)
    const fetched = await fetch(deps, wanted, bytesMax)
    wanted.forEach((each, index) => {
      const found = fetched[index]
      if (found) take(deps, each, found)
    })
  }
}

const fetch = async ({ pool, logger }: FeedDeps, wanted: readonly Held[], bytesMax: number) => {
  try {
    const cursors = wanted.map(({ cursor }) => cursor)
    return await within(fetchLimits.timeoutMs, 'fetch', fetchChunks(pool, cursors, bytesMax))
  } catch (error) {
    // The heartbeat decides whether the leases still stand; reading just tries again.
    logger?.warn({ err: error }, 'log_fetch.failed')
    lookAgain(wanted)
    await sleep(fetchLimits.retryMs)
    return []
  }
}

/** One batch in hand and one ready for each partition, or one only where memory is scarce. */
const shareOf = (bytesMax: number, partitions: number) => {
  const each = bytesMax / Math.max(1, partitions)
  const prefetch = each >= 4 * chunkBytesMax
  return { prefetch, bytes: prefetch ? each / 2 : each }
}

const hasRoom = (held: Held, prefetch: boolean) =>
  held.reader !== null &&
  held.news &&
  !held.releasing &&
  held.queued === null &&
  (prefetch || held.handling === null)

export const lookAgain = (held: readonly Held[]) => {
  for (const each of held) each.news = true
}

const take = (deps: FeedDeps, held: Held, { start, batch, after, chunks, isCut }: Fetched) => {
  const { topic, partition, lost } = held.lease
  if (lost.aborted || held.releasing || deps.over.aborted) return
  held.isBehind = isCut
  const { from } = held.cursor
  if (from < start)
    return deps.die(
      new Fault(
        'log_gap',
        `${topic}/${partition} starts at ${start}, but the reader is at ${from}: what stood between is gone`,
      ),
    )
  if (batch === null) {
    // Below a reader that stands beyond the end there may still come chunks, but none it wants.
    held.cursor = { ...held.cursor, after }
    return
  }
  held.cursor = { topic, partition, from: batch.next, after, chunks }
  held.news = true
  held.queued = batch
  next(deps, held)
}

/** Hands out the batch that is ready, when none is in hand. */
const next = (deps: FeedDeps, held: Held) => {
  const { queued, reader } = held
  if (queued === null || reader === null || held.handling !== null) return
  if (held.lease.lost.aborted || held.releasing || deps.over.aborted) return
  held.queued = null
  held.handling = handle(deps, reader, queued).then(() => {
    held.handling = null
    next(deps, held)
    deps.signal.wake()
  })
}

const handle = async ({ die }: FeedDeps, reader: Reader, batch: Batch) => {
  try {
    await reader.handle(batch)
  } catch (error) {
    die(error)
  }
}
