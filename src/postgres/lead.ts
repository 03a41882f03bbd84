// One process leads at a time: an advisory lock, held for as long as the session that took it.
import type { Connection, Pool } from './sql.ts'

type Lead = {
  /** Of the lock: eight letters read as a number. */
  readonly key: string
  /** Works for as long as it leads; the seat's queries fail when the lock is gone. */
  readonly term: (seat: Connection) => Promise<void>
}

/** Returns at once when another process leads, else when the term ends. */
export const leadOnce = ({ connect }: Pick<Pool, 'connect'>, lead: Lead): Promise<void> =>
  connect(async (seat) => {
    if (!(await take(seat, lead.key))) return
    try {
      await lead.term(seat)
    } catch (error) {
      // The first error is the one to tell.
      await leave(seat, lead.key).catch(() => undefined)
      throw error
    }
    await leave(seat, lead.key)
  })

/** A leader whose machine vanished must not hold the lock for the two hours TCP would give it. */
const take = async (seat: Connection, key: string): Promise<boolean> => {
  const { rows } = await seat.query<{ held: boolean }>(
    `select pg_try_advisory_lock(${key}) as held, set_config('tcp_keepalives_idle', '10', false),
            set_config('tcp_keepalives_interval', '5', false),
            set_config('tcp_keepalives_count', '3', false)`,
  )
  return rows[0]?.held === true
}

/** A session that goes back to its pool with the lock would keep everybody from leading: it is ended. */
const leave = async (seat: Connection, key: string): Promise<void> => {
  try {
    await seat.query(`select pg_advisory_unlock(${key})`)
  } catch (error) {
    await seat.query('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined)
    throw error
  }
}
