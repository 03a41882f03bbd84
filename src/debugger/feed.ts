// What somebody who watches a source is told: its newest entries, then each as it comes, at the watcher's own pace.
// Nothing is queued for anybody: the newest 500 of the table are the buffer, and a hole in their ids is what was missed.
import type { Logger } from 'pino'
import { type Bell, hangBell } from '../bell.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'
import { channels, loadEntries, renewWatches, type Watch } from './store.ts'

export const feedLimits = {
  /** Watchers of one process; each asks the database for itself. */
  watchersMax: 32,
  renewMs: 5_000,
  /** A watch ends by itself this long after it was last renewed. */
  expireMs: 15_000,
  /** A notification lost on the way costs at most this long. */
  pollMs: 1_000,
  /** Silence that long is told of, so that nobody between takes the connection for dead. */
  idleMs: 15_000,
  /** Entries read at once. */
  readMax: 100,
}

export type Heard =
  | { readonly type: 'entry'; readonly id: number; readonly entry: string }
  /** Entries between the last and the next that this watcher was too late for, or nobody could be shown. */
  | { readonly type: 'skipped'; readonly amount: number }
  | { readonly type: 'idle' }

export type Feed = {
  /** `null` when too many watch already. Ends when its signal aborts; rejects when Postgres fails. */
  follow(wish: Wish): Promise<AsyncIterable<Heard> | null>
}

export type Wish = {
  readonly sourceId: number
  /** The last id this watcher has; `null` for one that begins. */
  readonly after: number | null
  readonly signal: AbortSignal
}

type Deps = {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  readonly limits?: Partial<typeof feedLimits>
}

export const openFeed = (deps: Deps): Feed => {
  const limits = { ...feedLimits, ...deps.limits }
  const watchers = new Map<Bell, number>()
  const listening = openListening(deps, watchers)
  const renew = (sourceIds: readonly number[], isNew: boolean) => {
    const at = deps.clock()
    const until = new Date(at.getTime() + limits.expireMs)
    return renewWatches(deps.pool, { sourceIds, at, until, isNew })
  }
  let timer: NodeJS.Timeout | undefined
  const renewAll = () => {
    renew([...new Set(watchers.values())], false).catch((error: unknown) =>
      deps.logger.warn({ err: error }, 'watches.not_renewed'),
    )
  }
  const leave = (bell: Bell) => {
    if (!watchers.delete(bell) || watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
    listening.close()
  }
  const enter = async (bell: Bell, sourceId: number): Promise<Watch> => {
    watchers.set(bell, sourceId)
    timer ??= setInterval(renewAll, limits.renewMs)
    await listening.open()
    const [watch] = await renew([sourceId], true)
    return watch as Watch
  }
  return {
    follow: async (wish) => {
      if (watchers.size >= limits.watchersMax) return null
      const bell = hangBell()
      // A stream that is never read never ends by itself either.
      wish.signal.addEventListener('abort', () => leave(bell), { once: true })
      try {
        const watch = await enter(bell, wish.sourceId)
        if (wish.signal.aborted) leave(bell)
        return listen({ pool: deps.pool, limits, bell, leave }, { ...wish, watch })
      } catch (error) {
        leave(bell)
        throw error
      }
    },
  }
}

type Listening = { open(): Promise<unknown>; close(): void }

/** One connection for all watchers, and none while there are none. */
const openListening = ({ pool, logger }: Deps, watchers: ReadonlyMap<Bell, number>): Listening => {
  let opened: Promise<() => Promise<void>> | null = null
  const ring = (sourceId: number | null) => {
    for (const [bell, own] of watchers) if (sourceId === null || own === sourceId) bell.ring()
  }
  return {
    open: () => {
      opened ??= pool
        .listen(channels.entries, {
          notified: (payload) => ring(Number(payload)),
          reconnected: () => ring(null),
        })
        .catch((error: unknown) => {
          opened = null
          throw error
        })
      return opened
    },
    close: () => {
      opened
        ?.then((unlisten) => unlisten())
        .catch((error: unknown) => logger.warn({ err: error }, 'debugger.not_closed'))
      opened = null
    },
  }
}

type Ear = {
  readonly pool: Pool
  readonly limits: typeof feedLimits
  readonly bell: Bell
  readonly leave: (bell: Bell) => void
}

async function* listen(
  { pool, limits, bell, leave }: Ear,
  { sourceId, after, signal, watch }: Wish & { readonly watch: Watch },
): AsyncGenerator<Heard> {
  try {
    // An id of a watch that ended, or of entries that a crash took, says nothing about what was missed.
    const isKnown = after !== null && after >= watch.began && after <= watch.last
    let last = isKnown ? after : null
    let quietSince = performance.now()
    while (!signal.aborted) {
      const rows = await loadEntries(pool, { sourceId, after: last ?? 0, limit: limits.readMax })
      for (const { id, entry } of rows) {
        if (signal.aborted) return
        // Of what was there when a watcher came it gets the newest; of all that is newer it misses nothing unsaid.
        const before = last ?? Math.min(id - 1, watch.last)
        if (id > before + 1) yield { type: 'skipped', amount: id - before - 1 }
        last = id
        yield { type: 'entry', id, entry }
        quietSince = performance.now()
      }
      if (rows.length === limits.readMax) continue
      await bell.wait(Math.min(limits.pollMs, limits.idleMs), signal)
      if (performance.now() - quietSince < limits.idleMs || signal.aborted) continue
      yield { type: 'idle' }
      quietSince = performance.now()
    }
  } finally {
    leave(bell)
  }
}
