// What the stages tell a live debugger, and only where somebody watches: kept for a moment, masked, then written.
import type { Logger } from 'pino'
import type { Json, Message } from '../domain/message.ts'
import type { Counted } from '../domain/pipeline.ts'
import type { Pool } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import type { Clock } from '../running.ts'
import { entryOf } from './entry.ts'
import { openPending, type Taken } from './pending.ts'
import { deleteEnded, insertEntries, type Written } from './store.ts'
import { openWatches } from './watches.ts'

/** What became of a call; `refused`: of a request, whose calls were not even looked at. */
export const debuggerSteps = ['accepted', 'rejected', 'filtered', 'duplicate', 'refused'] as const

export type DebuggerStep = (typeof debuggerSteps)[number]

export type Told = {
  readonly step: DebuggerStep
  /** Epoch ms. */
  readonly at: number
  readonly reason: string | null
  readonly type: Counted['type']
  readonly event: string | null
  readonly messageId: string | null
  /** The body as it is stored, or the call as it came; `null` of a refused request. In clear: it is masked here. */
  readonly call: Message['body'] | Json
}

export type Debugger = {
  /** False as long as nobody watches anything: then nothing else is asked. */
  isWatching(): boolean
  isWatched(sourceId: number): boolean
  tell(sourceId: number, told: readonly Told[]): void
}

export const unwatched: Debugger = {
  isWatching: () => false,
  isWatched: () => false,
  tell: () => undefined,
}

export const debuggerLimits = {
  /** Entries of one source that are kept, in memory until they are written and in Postgres. */
  entriesMax: 500,
  /** Calls in memory, over all sources, before they are masked. */
  pendingBytesMax: 16_777_216,
  flushMs: 250,
  /** Masking gives way to the event loop after this many milliseconds, */
  yieldMs: 5,
  /** and ends after this many of one flush, but for the first: hostile calls cost no more. */
  maskMsMax: 100,
  /** A notification lost on the way costs at most this long. */
  pollMs: 1_500,
  /** Sources watched at once, as far as one process tells of them. */
  watchesMax: 1_000,
  sweepMs: 600_000,
  /** After its watch ended, what was written of a source is deleted. */
  keptMs: 3_600_000,
}

type Deps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly limits?: Partial<typeof debuggerLimits>
}

export type OpenDebugger = Debugger & {
  /** Resolves when everything told before is written, or given up. */
  flush(): Promise<void>
  /** Of calls held in memory now. */
  pendingBytes(): number
  close(): Promise<void>
}

export const openDebugger = async (deps: Deps): Promise<OpenDebugger> => {
  const { pool, clock, logger } = deps
  const limits = { ...debuggerLimits, ...deps.limits }
  const watches = await openWatches({ pool, clock, logger, limits })
  const pending = openPending(limits)
  let inHand: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let waiting = 0
  // What masks is not compiled yet: the first calls somebody watches for would fall to the limit.
  let maskMsMax = Number.POSITIVE_INFINITY
  const write = async () => {
    const taken = pending.take()
    if (taken.length === 0) return
    try {
      const written = await render(taken, { yieldMs: limits.yieldMs, maskMsMax })
      maskMsMax = limits.maskMsMax
      await insertEntries(pool, written, limits.entriesMax)
    } catch (error) {
      pending.skip(taken)
      logger.warn({ err: error, sources: taken.length }, 'debugger.not_written')
    }
  }
  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    waiting += 1
    inHand = inHand.then(write)
    await inHand
    waiting -= 1
    arm()
  }
  /** One flush at a time, however long Postgres takes: what is told meanwhile goes with the next. */
  const arm = () => {
    if (waiting === 0 && pending.bytes() > 0)
      timer ??= setTimeout(() => void flush(), limits.flushMs)
  }
  const sweep = () => deleteEnded(pool, new Date(clock().getTime() - limits.keptMs))
  const sweeping = repeat(limits.sweepMs, () =>
    sweep().catch((error: unknown) => logger.warn({ err: error }, 'debugger.not_swept')),
  )
  return {
    isWatching: watches.isWatching,
    isWatched: watches.isWatched,
    // The one way in: whoever must not be shown is left out here.
    tell: (sourceId, told) => {
      if (!watches.isWatched(sourceId)) return
      pending.put(sourceId, told)
      arm()
    },
    flush,
    pendingBytes: pending.bytes,
    close: async () => {
      await sweeping.stop()
      await watches.close()
      await flush()
    },
  }
}

/** The newest first, so that it is the oldest that are lost when time runs out. */
const render = async (
  taken: readonly Taken[],
  { yieldMs, maskMsMax }: Pick<typeof debuggerLimits, 'yieldMs' | 'maskMsMax'>,
): Promise<readonly Written[]> => {
  const written: Written[] = []
  let spentMs = 0
  let since = performance.now()
  for (const { sourceId, told, skipped } of taken) {
    const entries: string[] = []
    for (const one of told.toReversed()) {
      if (spentMs > maskMsMax) break
      entries.push(JSON.stringify(entryOf(one)))
      const elapsedMs = performance.now() - since
      if (elapsedMs < yieldMs) continue
      spentMs += elapsedMs
      await new Promise((resolve) => setImmediate(resolve))
      since = performance.now()
    }
    const lost = told.length - entries.length
    written.push({ sourceId, entries: entries.reverse(), skipped: skipped + lost })
  }
  return written
}
