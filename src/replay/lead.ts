// Of all processes that deliver one works the replays, whichever takes the lead.
import type { Bell } from '../bell.ts'
import { isPassing } from '../postgres/away.ts'
import { leadOnce } from '../postgres/lead.ts'
import type { Sql } from '../postgres/sql.ts'
import type { ReplayDeps } from './deps.ts'

/** 'MILLRPLY' read as a number. */
const lockKey = '5567930515628166233'

type Lead = {
  readonly bell: Bell
  readonly stopping: AbortSignal
  /** Works until the signal aborts or something fails; the seat's queries fail when the lock is gone. */
  readonly term: (seat: Sql) => Promise<void>
}

type Deps = Pick<ReplayDeps, 'pool' | 'logger' | 'limits'>

/** Takes the lead whenever it is free, until `stopping`. */
export const keepLeading = async (deps: Deps, lead: Lead): Promise<void> => {
  const { bell, stopping } = lead
  while (!stopping.aborted) {
    try {
      await leadOnce(deps.pool, { key: lockKey, term: lead.term })
    } catch (error) {
      if (stopping.aborted && (error as Error).name === 'AbortError') return
      if (!isPassing(error)) throw error
      deps.logger.warn({ err: error }, 'replay.interrupted')
    }
    await bell.wait(deps.limits.standbyMs, stopping)
  }
}
