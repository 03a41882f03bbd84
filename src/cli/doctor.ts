// `millrace doctor`: looks at everything that must be right, and says in plain words what to do where it is not.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Config, isEmbedded } from '../config.ts'
import { kafkaSource } from '../log/kafka.ts'
import { openLogger } from '../logger.ts'
import { findPostgres } from '../postgres/embedded.ts'
import { openPool } from '../postgres/pool.ts'
import type { Pool } from '../postgres/sql.ts'
import { type Command, flag, text } from './command.ts'
import { databaseChecks } from './doctor-checks.ts'
import { traceFinding } from './doctor-deletions.ts'

export type Finding = {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
}

export const command: Command = {
  name: 'doctor',
  summary: 'check settings, Postgres, log, processes and the ledger of deliveries',
  usage: ['[--json] [--user-id ID]'],
  options: { json: { type: 'boolean' }, 'user-id': { type: 'string' } },
  run: async (call) => {
    const findings = await examine(call.config, text(call, 'user-id'))
    const failed = findings.some(({ state }) => state === 'fail')
    if (flag(call, 'json')) {
      call.terminal.out(JSON.stringify({ ok: !failed, findings }, null, 2))
      return failed ? 1 : 0
    }
    const width = Math.max(...findings.map(({ check }) => check.length))
    for (const { check, state, message } of findings)
      call.terminal.out(`${state.padEnd(4)}  ${check.padEnd(width)}  ${message}`)
    return failed ? 1 : 0
  },
}

/** `traced` is looked for in every table. */
const examine = async (config: Config, traced: string | null): Promise<readonly Finding[]> => [
  settingsFinding(config),
  ...(await databaseFindings(config, traced)),
  ...(await kafkaFindings(config)),
]

const settingsFinding = (config: Config): Finding => {
  const database = isEmbedded(config) ? 'an embedded Postgres' : 'a Postgres of its own'
  const log = config.kafkaBrokers === null ? 'Postgres' : 'Kafka'
  const message = `they can be used: roles ${config.roles.join(', ')}, on ${database}, the log on ${log}`
  return { check: 'settings', state: 'ok', message }
}

const databaseFindings = async (
  config: Config,
  traced: string | null,
): Promise<readonly Finding[]> => {
  const url = config.databaseUrl ?? (await findPostgres(config.dataDir))
  if (url === null) {
    const message = `no Millrace runs on ${config.dataDir}: start it with "npm start", or set MILLRACE_DATA_DIR or MILLRACE_DATABASE_URL to where it runs`
    return [{ check: 'postgres', state: 'fail', message }]
  }
  const onError = () => undefined
  const pool = openPool({ url, connectionsMax: 2, name: 'millrace doctor', onError })
  try {
    const reached = await reach(pool)
    if (reached.state === 'fail') return [reached]
    const traces = traced === null ? [] : [await traceFinding(pool, traced)]
    return [reached, ...(await databaseChecks(pool)), ...traces]
  } finally {
    await pool.close()
  }
}

/** The first version with everything the statements use. */
const oldestVersion = 14

const reach = async (pool: Pool): Promise<Finding> => {
  const check = 'postgres'
  try {
    const { rows } = await pool.query<{ version: number; readOnly: boolean }>(
      `select current_setting('server_version_num')::int as version, pg_is_in_recovery() as "readOnly"`,
    )
    const { version = 0, readOnly = false } = rows[0] ?? {}
    const major = Math.floor(version / 10_000)
    if (major < oldestVersion)
      return {
        check,
        state: 'fail',
        message: `it is version ${major}: Millrace needs ${oldestVersion} or later`,
      }
    if (readOnly) {
      const message = 'it is a standby that cannot be written: name the primary'
      return { check, state: 'fail', message }
    }
    return { check, state: 'ok', message: `it answers and is version ${major}` }
  } catch (error) {
    const { message, code } = error as { message: string; code?: string }
    return {
      check,
      state: 'fail',
      message: `no connection (${message || code}): check that it runs, and user, password and database name of MILLRACE_DATABASE_URL`,
    }
  }
}

const kafkaWaitMs = 10_000

const kafkaFindings = async (config: Config): Promise<readonly Finding[]> => {
  const { kafkaBrokers: brokers, kafkaPrefix: prefix } = config
  if (brokers === null) return []
  const check = 'kafka'
  const source = kafkaSource({
    brokers,
    prefix,
    logger: openLogger({ level: 'silent', pretty: false }),
  })
  try {
    const bounds = await Promise.race([source.bounds('calls'), sleep(kafkaWaitMs, null)])
    const message =
      bounds === null
        ? `it did not answer within ${kafkaWaitMs / 1_000} s: check that ${brokers.join(', ')} can be reached`
        : `it answers, and topic calls has ${bounds.length} partitions`
    return [{ check, state: bounds === null ? 'fail' : 'ok', message }]
  } catch (error) {
    const message = `${(error as Error).message}: check MILLRACE_KAFKA_BROKERS, and that Millrace has been started once to make its topics`
    return [{ check, state: 'fail', message }]
  } finally {
    await Promise.race([source.close().catch(() => undefined), sleep(1_000)])
  }
}
