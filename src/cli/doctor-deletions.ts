// What `millrace doctor` finds of deletions: whether any is stuck, and whether anything of an erased user is left.
import { findTraces } from '../erase/traces.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Finding } from './doctor.ts'

type Found = Omit<Finding, 'check'>

const hourMs = 3_600_000

/** Nothing names a user whose deletion is finished, and nothing refers to a profile that is gone. */
export const checkDeletions = async (sql: Sql, now: Date): Promise<Found> => {
  const { rows } = await sql.query<{ open: number; oldest: Date | null; named: number }>(
    `select (count(*) filter (where state in ('received', 'running')))::int as open,
            min(created_at) filter (where state in ('received', 'running')) as oldest,
            (select count(*)::int from deletion_subject s join deletion_request r on r.id = s.request_id
              where r.state in ('finished', 'failed') and s.value is not null)
            + (select count(*)::int from deletion_identity i join deletion_request r on r.id = i.request_id
                where r.state in ('finished', 'failed')) as named
       from deletion_request`,
  )
  const { open = 0, oldest = null, named = 0 } = rows[0] ?? {}
  if (named > 0)
    return { state: 'fail', message: `${named} ids stand in requests that are over: report it` }
  const orphans = await countOrphans(sql)
  if (orphans.length > 0)
    return {
      state: 'fail',
      message: `profiles that are gone are named in ${orphans.join(', ')}: report it`,
    }
  if (oldest !== null && now.getTime() - oldest.getTime() > hourMs)
    return {
      state: 'warn',
      message: `${open} deletions are open, the oldest since ${oldest.toISOString()}: "millrace delete-user show ID" says what of it is left; a process with the role project must run, and every process be of this release`,
    }
  return { state: 'ok', message: `${open} are open, and those that are over have left no id` }
}

/** Tables with rows of users who were erased or merged away. */
const countOrphans = async (sql: Sql): Promise<readonly string[]> => {
  const { rows } = await sql.query<{ name: string; has: boolean }>(
    ['identity', 'membership', 'account_user']
      .map(
        (table) => `select '${table}' as name, exists (
           select from ustate u where u.merged_into = u.user_key
              and exists (select from ${table} t where t.user_key = u.user_key)) as has`,
      )
      .join(' union all '),
  )
  return rows.filter(({ has }) => has).map(({ name }) => name)
}

/** A look through the whole database. */
export const traceFinding = async (sql: Sql, userId: string): Promise<Finding> => {
  const traces = await findTraces(sql, userId)
  const told = traces.map(({ table, rows }) => `${table} (${rows} rows)`).join(', ')
  return traces.length === 0
    ? { check: 'traces', state: 'ok', message: 'no table but the log holds this id' }
    : { check: 'traces', state: 'warn', message: `this id stands in ${told}` }
}
