// What `millrace doctor` finds of the alerts on their way to the operator.
import type { Sql } from '../postgres/sql.ts'
import type { Finding } from './doctor.ts'

const minuteMs = 60_000
/** Four tries are made in the first three minutes. */
const alertMaxMs = 5 * minuteMs

export const checkAlerts = async (sql: Sql, now: Date): Promise<Omit<Finding, 'check'>> => {
  const { rows } = await sql.query<{ waiting: number; oldest: Date | null; type: string | null }>(
    `select count(*)::float8 as waiting, min(at) as oldest, (array_agg(type order by at))[1] as type
       from alert_outbox`,
  )
  const { waiting = 0, oldest = null, type = null } = rows[0] ?? {}
  if (oldest === null) return { state: 'ok', message: 'none waits to be sent' }
  const ms = now.getTime() - oldest.getTime()
  const message = `${waiting} wait to be sent, the oldest (${type}) for ${Math.round(ms / minuteMs)} minutes`
  if (ms <= alertMaxMs) return { state: 'ok', message }
  const why =
    'MILLRACE_OPERATOR_WEBHOOK_URL is not set on a process that delivers, or does not answer with 2xx'
  return { state: 'warn', message: `${message}: ${why}` }
}
