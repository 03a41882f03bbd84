// The sync stage: of all processes that run it one leads, and syncs audiences into topic `outbound`.
import { openSweep } from '../audience/sweep.ts'
import { type Bell, hangBell } from '../bell.ts'
import { isPassing } from '../postgres/away.ts'
import { leadOnce } from '../postgres/lead.ts'
import type { Running } from '../running.ts'
import { coordinate } from './coordinator.ts'
import { syncLimits } from './limits.ts'
import { openRelay, takeOver } from './relay.ts'
import { syncChannel } from './request.ts'
import type { SyncDeps } from './term.ts'

export { syncLimits } from './limits.ts'

type StartDeps = Omit<SyncDeps, 'limits' | 'sweepDue'> & {
  readonly limits?: Partial<SyncDeps['limits']>
  /** Takes the place of the real one where a test watches the sweep. */
  readonly sweepDue?: SyncDeps['sweepDue']
}

export const startSync = (start: StartDeps): Running => {
  const deps: SyncDeps = {
    sweepDue: openSweep(),
    ...start,
    limits: { ...syncLimits, ...start.limits },
  }
  const stopping = new AbortController()
  const bell = hangBell()
  const done = serve(deps, bell, stopping.signal)
  done.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return done
    },
    done,
  }
}

const serve = async (deps: SyncDeps, bell: Bell, stopping: AbortSignal): Promise<void> => {
  let unlisten: (() => Promise<void>) | null = null
  const ring = { notified: () => bell.ring(), reconnected: () => bell.ring() }
  try {
    while (!stopping.aborted) {
      try {
        unlisten ??= await deps.pool.listen(syncChannel, ring)
        await lead(deps, bell, stopping)
      } catch (error) {
        if (stopping.aborted && (error as Error).name === 'AbortError') return
        if (!isPassing(error)) throw error
        deps.logger.warn({ err: error }, 'sync.interrupted')
      }
      await bell.wait(deps.limits.standbyMs, stopping)
    }
  } finally {
    await unlisten?.()
  }
}

/** 'MILLSYNC' read as a number: held for as long as the session that leads. */
const lockKey = '5567930515628772931'

/** Returns at once when another process leads; otherwise when the term ends, by throwing. */
const lead = (deps: SyncDeps, bell: Bell, signal: AbortSignal): Promise<void> =>
  leadOnce(deps.pool, {
    key: lockKey,
    term: async (seat) => {
      const { epoch, bounds } = await takeOver(deps)
      deps.logger.info({ epoch }, 'relay.taken')
      const term = { deps, epoch, seat, signal }
      const relay = await openRelay(term, bounds)
      await coordinate({ term, relay, bell })
    },
  })
