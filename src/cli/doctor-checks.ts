// What `millrace doctor` finds in the database: migrations, clocks, processes, the ledger, and what waits or died.
import { loadLedger, sumLedger } from '../deliver/ledger.ts'
import { compareMigrations } from '../postgres/migrate.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Finding } from './doctor.ts'
import { checkAlerts } from './doctor-alerts.ts'
import { checkArchiveStanding } from './doctor-archive.ts'
import { checkAudiences } from './doctor-audiences.ts'
import { checkDeletions } from './doctor-deletions.ts'

type Check = {
  readonly name: string
  run(sql: Sql, now: Date): Promise<Omit<Finding, 'check'>>
}

/** One that cannot be made fails by itself; the others are made all the same. */
export const databaseChecks = async (sql: Sql): Promise<readonly Finding[]> => {
  const migrations = await found(sql, { name: 'migrations', run: checkMigrations }, new Date())
  // Nothing else can be asked of tables that are not there.
  if (migrations.state === 'fail') return [migrations]
  const skew = await readSkew(sql)
  const findings: Finding[] = [migrations, skewFinding(skew)]
  const now = new Date(Date.now() + skew)
  for (const check of checks) findings.push(await found(sql, check, now))
  return findings
}

const found = async (sql: Sql, { name, run }: Check, now: Date): Promise<Finding> => {
  try {
    return { check: name, ...(await run(sql, now)) }
  } catch (error) {
    return { check: name, state: 'fail', message: `this failed: ${(error as Error).message}` }
  }
}

const ok = (message: string) => ({ state: 'ok', message }) as const
const warn = (message: string) => ({ state: 'warn', message }) as const
const fail = (message: string) => ({ state: 'fail', message }) as const

const checkMigrations: Check['run'] = async (sql) => {
  const { rows } = await sql.query(`select from pg_tables where tablename = 'migration'`)
  if (rows.length === 0)
    return fail('the database has no tables of Millrace: start Millrace, or run "millrace migrate"')
  const { missing, unknown } = await compareMigrations(sql)
  if (unknown.length > 0)
    return fail(`the database is newer (${unknown.join(', ')}): use the version that migrated it`)
  if (missing.length > 0)
    return fail(`${missing.join(', ')} not applied: start Millrace, or run "millrace migrate"`)
  return ok('all are applied')
}

const skewMaxMs = 2_000

/** Positive: the database is ahead. */
const readSkew = async (sql: Sql): Promise<number> => {
  const before = Date.now()
  const { rows } = await sql.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  )
  return (rows[0]?.ms ?? before) - (before + Date.now()) / 2
}

const skewFinding = (skew: number): Finding => {
  const seconds = (Math.abs(skew) / 1_000).toFixed(1)
  return Math.abs(skew) <= skewMaxMs
    ? {
        check: 'clock',
        state: 'ok',
        message: `this machine and the database differ by ${seconds} s`,
      }
    : {
        check: 'clock',
        state: 'warn',
        message: `this machine and the database differ by ${seconds} s: Millrace goes by the database, times in logs by the machine; set up NTP`,
      }
}

const stages = ['collect', 'project', 'sync', 'deliver', 'admin'] as const
const beatMaxMs = 10_000

const checkProcesses: Check['run'] = async (sql, now) => {
  const { rows } = await sql.query<{
    host: string
    pid: number
    roles: string[]
    beatAt: Date
    isBehind: boolean
  }>(
    `select p.host, p.pid, p.roles, p.beat_at as "beatAt", p.configuration_version < v.version as "isBehind"
       from process p cross join configuration_version v order by p.started_at`,
  )
  const late = rows.filter(({ beatAt }) => now.getTime() - beatAt.getTime() > beatMaxMs)
  const living = rows.filter((row) => !late.includes(row))
  const missing = stages.filter((role) => !living.some(({ roles }) => roles.includes(role)))
  if (living.length === 0) return fail('none is alive: start Millrace')
  if (missing.length > 0)
    return fail(
      `none has the role ${missing.join(', ')}: start one with --roles ${missing.join(',')}`,
    )
  const names = (of: typeof rows) => of.map(({ host, pid }) => `${host}:${pid}`).join(', ')
  if (late.length > 0)
    return warn(
      `${names(late)} has not been heard of for 10 s: it hangs, or died and is forgotten within a minute`,
    )
  const behind = living.filter(({ isBehind }) => isBehind)
  if (behind.length > 0)
    return warn(`${names(behind)} has not taken up the newest configuration: look again in 5 s`)
  return ok(`${living.length} alive, with every role`)
}

const checkLog: Check['run'] = async (sql) => {
  const { rows } = await sql.query<{ partitions: number }>(
    `select count(*)::int as partitions from position where reader = 'deliver'`,
  )
  const { partitions = 0 } = rows[0] ?? {}
  return partitions === 0
    ? warn('delivery has read no partition yet: it has not run on this database')
    : ok(`delivery reads ${partitions} partitions`)
}

const checkLedger: Check['run'] = async (sql) => {
  const lines = await loadLedger(sql)
  const { gap, consumed, delivered, parked, dead, inFlight } = sumLedger(lines)
  if (gap === 0n)
    return ok(
      `it balances: ${consumed} consumed, ${delivered} delivered, ${parked} parked, ${dead} dead, ${inFlight} in flight`,
    )
  const where = lines.filter((line) => line.gap !== 0n)
  const places = where.map(({ topic, partition }) => `${topic}/${partition}`).join(', ')
  return fail(
    `${gap} messages have no outcome, in ${places}: keep the log's retention up and report it with this output`,
  )
}

const minuteMs = 60_000
const windowMinutes = 240

const checkParked: Check['run'] = async (sql, now) => {
  const { rows } = await sql.query<{ parked: number; oldest: Date | null; due: Date | null }>(
    `select count(*)::float8 as parked, min(parked_at) as oldest,
            min(next_at) filter (where lease_owner is null) as due from parked`,
  )
  const { parked = 0, oldest = null, due = null } = rows[0] ?? {}
  if (oldest === null) return ok('nothing waits for another try')
  const minutes = (since: Date) => Math.round((now.getTime() - since.getTime()) / minuteMs)
  const message = `${parked} messages wait, the oldest for ${minutes(oldest)} minutes`
  if (due !== null && minutes(due) > 5)
    return fail(
      `${message}; one has been due for ${minutes(due)} minutes: no process with the role deliver claims it`,
    )
  return minutes(oldest) > windowMinutes / 2
    ? warn(`${message}: see "millrace destination test NAME" for what its receiver answers`)
    : ok(message)
}

const dayMs = 86_400_000

const checkDead: Check['run'] = async (sql, now) => {
  const { rows } = await sql.query<{ name: string; reason: string; dead: number }>(
    `select coalesce(d.name, t.destination_id::text) as name, t.reason, t.dead from (
       select destination_id, reason, count(*)::float8 as dead from dead
        where dead_at >= $1 and replayed_at is null and reason <> 'cancelled' group by 1, 2) t
       left join destination d on d.id = t.destination_id order by t.dead desc limit 5`,
    [new Date(now.getTime() - dayMs)],
  )
  if (rows.length === 0) return ok('no message was given up within a day but what was cancelled')
  const told = rows.map(({ name, reason, dead }) => `${dead} of ${name} (${reason})`).join(', ')
  return warn(`given up within a day: ${told}; "millrace dead recover NAME" sends them again`)
}

/** A receiver may be away for as long as a restart takes. */
const openMaxMs = 5 * minuteMs

const checkUrls: Check['run'] = async (sql, now) => {
  const { rows } = await sql.query<{ name: string; state: string; url: string }>(
    `select coalesce(d.name, w.destination_id::text) as name, w.state, w.url from (
       select destination_id, url, state, since from webhook_url
        union
       select destination_id, url, 'breaker open', min(since) from webhook_breaker
        where breaker = 'open' and since < $1 and told_at > $2 group by 1, 2) w
       left join destination d on d.id = w.destination_id order by w.since limit 5`,
    [new Date(now.getTime() - openMaxMs), new Date(now.getTime() - minuteMs)],
  )
  if (rows.length === 0) return ok('all are posted to')
  const told = rows.map(({ name, state, url }) => `${name} ${URL.parse(url)?.host ?? ''}: ${state}`)
  return warn(`not posted to: ${told.join(', ')}; see /admin/v1/destinations/:id/urls`)
}

const checks: readonly Check[] = [
  { name: 'processes', run: checkProcesses },
  { name: 'log', run: checkLog },
  { name: 'ledger', run: checkLedger },
  { name: 'archive', run: checkArchiveStanding },
  { name: 'audiences', run: checkAudiences },
  { name: 'parked', run: checkParked },
  { name: 'dead', run: checkDead },
  { name: 'urls', run: checkUrls },
  { name: 'alerts', run: checkAlerts },
  { name: 'deletions', run: checkDeletions },
]
