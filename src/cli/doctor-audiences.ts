// What `millrace doctor` finds of audiences: whether anybody syncs them, and whether a sync is overdue.
import type { Sql } from '../postgres/sql.ts'
import type { Finding } from './doctor.ts'

const beatMaxMs = 10_000
const overdueMaxMs = 30 * 60_000
/** More are not counted. */
const changesShown = 100_000

type Row = {
  readonly audiences: number
  readonly syncing: number
  readonly changes: number
  readonly due: Date | null
}

/** Without a destination that is on there is nobody to tell: such an audience is never synced, and never late. */
export const checkAudiences = async (sql: Sql, now: Date): Promise<Omit<Finding, 'check'>> => {
  const { rows } = await sql.query<Row>(
    `select (select count(*) from audience)::int as audiences,
            (select count(*) from process where 'sync' = any(roles) and beat_at > $1)::int as syncing,
            (select count(*) from (select from membership_change limit $2) c)::int as changes,
            (select min(s.next_sync_at) from sync_schedule s
               join audience_state a using (audience_id)
              where a.state = 'live' and exists (
                select from audience_destination l join destination d on d.id = l.destination_id
                 where l.audience_id = s.audience_id and d.enabled)) as due`,
    [new Date(now.getTime() - beatMaxMs), changesShown],
  )
  const { audiences, syncing, changes, due } = rows[0] as Row
  if (audiences === 0) return { state: 'ok', message: 'there are none' }
  const what = `${audiences} audiences and computed traits`
  if (syncing === 0)
    return {
      state: 'fail',
      message: `${what}, and no living process has the role sync: destinations are told nothing, and ${howMany(changes)} changes of sizes wait; start one with --roles sync`,
    }
  const minutes = due === null ? 0 : Math.round((now.getTime() - due.getTime()) / 60_000)
  if (due !== null && now.getTime() - due.getTime() > overdueMaxMs)
    return {
      state: 'warn',
      message: `a sync has been due for ${minutes} minutes: the log line "sync.delayed" names the partition it waits for`,
    }
  return { state: 'ok', message: `${what}, synced by ${syncing} processes` }
}

const howMany = (changes: number): string =>
  changes === changesShown ? `${changesShown} or more` : String(changes)
