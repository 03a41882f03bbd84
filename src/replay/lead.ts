// One process leads at a time: an advisory lock, held for as long as the session that took it.
import type { Bell } from '../bell.ts'
import { Fault } from '../fault.ts'
import { type Connection, type Sql, sqlState } from '../postgres/sql.ts'
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
      await deps.pool.connect((seat) => leadOnce(seat, lead))
    } catch (error) {
      if (stopping.aborted && (error as Error).name === 'AbortError') return
      if (!isPassing(error)) throw error
      deps.logger.warn({ err: error }, 'replay.interrupted')
    }
    await bell.wait(deps.limits.standbyMs, stopping)
  }
}

const leadOnce = async (seat: Connection, { term }: Lead): Promise<void> => {
  // A leader whose machine vanished must not hold the lock for the two hours TCP would give it.
  const { rows } = await seat.query<{ held: boolean }>(
    `select pg_try_advisory_lock(${lockKey}) as held, set_config('tcp_keepalives_idle', '10', false),
            set_config('tcp_keepalives_interval', '5', false),
            set_config('tcp_keepalives_count', '3', false)`,
  )
  if (!rows[0]?.held) return
  try {
    await term(seat)
  } finally {
    // Where this fails its error is the one to tell: the pool throws the session away, and the lock with it.
    await seat.query(`select pg_advisory_unlock(${lockKey})`)
  }
}

/** Whether starting over may help: the database or the log was away. */
export const isPassing = (error: unknown): boolean => {
  if (error instanceof Fault) return error.retriable
  const state = sqlState(error)
  if (state !== null) return /^(08|40|53|57|58)/.test(state)
  const { code, message } = error as { code?: unknown; message?: unknown }
  return (
    (typeof code === 'string' && /^(E[A-Z]+)$/.test(code)) ||
    /connection (terminated|ended|error)|timeout exceeded|not queryable/i.test(String(message))
  )
}
