// The doctor: says that all is well when it is, and names what is not, with what to do.
import { describe, expect, test } from 'vitest'
import { runCli } from '../../src/cli/cli.ts'
import { cloneDatabase } from '../support/database.ts'

type Finding = { readonly check: string; readonly state: string; readonly message: string }

const doctor = async (env: Record<string, string>, ...args: readonly string[]) => {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await runCli({
    args: ['doctor', ...args],
    env,
    terminal: {
      out: (line) => void out.push(line),
      err: (line) => void err.push(line),
      isTTY: false,
    },
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('the doctor', async () => {
  const { pool, url } = await cloneDatabase()
  const env = { MILLRACE_DATABASE_URL: url }
  const examine = async () => {
    const { code, out } = await doctor(env, '--json')
    const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: readonly Finding[] }
    expect(ok).toBe(code === 0)
    return { code, of: (check: string) => findings.find((finding) => finding.check === check) }
  }
  const beat = (roles: readonly string[], secondsAgo = 0) =>
    pool.query(
      `insert into process (id, host, pid, version, roles, configuration_version, started_at, beat_at)
       select gen_random_uuid(), 'here', 42, '1', $1, version, $2, $2 from configuration_version`,
      [roles, new Date(Date.now() - secondsAgo * 1_000)],
    )

  test('without a process it says to start one', async () => {
    const { code, of } = await examine()
    expect(code).toBe(1)
    expect(of('processes')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('start'),
    })
    expect(of('postgres')).toMatchObject({
      state: 'ok',
      message: expect.stringMatching(/version \d+/),
    })
    expect(of('migrations')?.state).toBe('ok')
  })

  test('a role that nobody has is named; with all of them it is content', async () => {
    await beat(['collect', 'project', 'sync', 'admin'])
    expect((await examine()).of('processes')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('role deliver'),
    })
    await beat(['deliver'])
    await pool.query(
      "insert into position (reader, topic, partition, next, epoch) values ('deliver', 'calls', 0, 0, 1)",
    )
    const { code, out, err } = await doctor(env)
    expect([code, err]).toEqual([0, ''])
    expect(out.split('\n').map((line) => line.slice(0, 4).trim())).toEqual(
      out.split('\n').map(() => 'ok'),
    )
    expect(out).toMatch(/^ok {4}ledger +it balances: 0 consumed/m)
  })

  test('a process that is not heard of any more is a warning', async () => {
    await beat(['deliver'], 30)
    const { code, of } = await examine()
    expect([code, of('processes')?.state]).toEqual([0, 'warn'])
    expect(of('processes')?.message).toContain('here:42')
    await pool.query('delete from process where beat_at < $1', [new Date(Date.now() - 20_000)])
  })

  test('an id that outlived its deletion fails; whatever holds an id is named', async () => {
    expect((await examine()).of('deletions')).toMatchObject({ state: 'ok' })
    await pool.query(
      `with made as (
         insert into deletion_request (workspace_id, origin, state, created_at)
         values (1, 'api', 'finished', '2026-01-01') returning id)
       insert into deletion_subject (request_id, n, kind, value) select id, 0, 0, 'gone-1' from made`,
    )
    const { code, of } = await examine()
    expect([code, of('deletions')?.state]).toEqual([1, 'fail'])
    expect((await doctor(env, '--user-id', 'gone-1')).out).toMatch(
      /traces +this id stands in deletion_subject \(1 rows\)/,
    )
    await pool.query('truncate deletion_request cascade')
    expect((await doctor(env, '--user-id', 'gone-1')).out).toMatch(/traces +no table but the log/)
  })

  test('a hole in the ledger fails, and names the partition', async () => {
    await pool.query(
      `insert into delivery_ledger (topic, partition, destination_id, taken, delivered)
       values ('calls', 0, 1, 3, 1)`,
    )
    const { code, of } = await examine()
    expect([code, of('ledger')?.state]).toEqual([1, 'fail'])
    expect(of('ledger')?.message).toMatch(/ messages have no outcome, in calls\/0/)
    await pool.query('delete from delivery_ledger')
  })

  test('what is due and not claimed fails; what died and is held is a warning', async () => {
    const [hourAgo, soon] = [new Date(Date.now() - 3_600_000), new Date(Date.now() + 60_000)]
    const park = (offset: number, nextAt: Date) =>
      pool.query(
        `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason,
           parked_at, next_at) values ('calls', 0, $1, 1, 1, 'm', 'track', 'temporary', $2, $3)`,
        [offset, hourAgo, nextAt],
      )
    await park(1, soon)
    expect((await examine()).of('parked')).toMatchObject({
      state: 'ok',
      message: expect.stringContaining('1 messages wait, the oldest for 60 minutes'),
    })
    await park(2, hourAgo)
    expect((await examine()).of('parked')).toMatchObject({ state: 'fail' })
    await pool.query('delete from parked')
    await pool.query(
      `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason, attempts,
         dead_at) values ('calls', 0, 3, 77, 'm', 'track', 'expired', 15, $1)`,
      [hourAgo],
    )
    await pool.query(
      `insert into webhook_url (destination_id, url, state, since)
       values (77, 'https://shop.test/hook?token=x', 'disabled', $1)`,
      [hourAgo],
    )
    const { of } = await examine()
    expect(of('dead')).toMatchObject({
      state: 'warn',
      message: expect.stringContaining('1 of 77 (expired)'),
    })
    expect(of('urls')).toMatchObject({
      state: 'warn',
      message: expect.stringContaining('77 shop.test: disabled'),
    })
    expect(of('urls')?.message).not.toContain('token')
    await pool.query(
      `insert into webhook_breaker (owner, destination_id, url, breaker, limit_now, limit_max, since, told_at)
       values ('a', 78, 'https://away.test/', 'open', 0, 20, $1, $2),
              ('a', 79, 'https://restarting.test/', 'open', 0, 20, $2, $2)`,
      [hourAgo, new Date()],
    )
    const { message = '' } = (await examine()).of('urls') ?? {}
    expect(message).toContain('78 away.test: breaker open')
    expect(message).not.toContain('restarting')
  })

  test('a database that a newer version migrated, or that lacks a migration, fails', async () => {
    await pool.query(
      "insert into migration (number, name, sha256) values (9999, '9999_new.sql', '')",
    )
    expect((await examine()).of('migrations')?.message).toContain('9999_new.sql')
    await pool.query('delete from migration where number in (9999, 25)')
    expect((await examine()).of('migrations')?.message).toContain('0025_recovery.sql not applied')
    await pool.query('drop table migration')
    expect((await examine()).of('migrations')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('millrace migrate'),
    })
  })

  test('a database that is not there fails in words, and so does a data directory without a Millrace', async () => {
    const gone = await doctor({ MILLRACE_DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' })
    expect(gone.code).toBe(1)
    expect(gone.out).toMatch(/^fail {2}postgres +no connection/m)
    const nothing = await doctor({ MILLRACE_DATA_DIR: '/tmp/millrace-doctor-finds-nothing-here' })
    expect(nothing.code).toBe(1)
    expect(nothing.out).toMatch(/^fail {2}postgres +no Millrace runs on/m)
    expect((await doctor({ MILLRACE_ADMIN_PORT: 'x' })).code).toBe(2)
  })

  test('a broker that is not there fails in words', async () => {
    const { code, out } = await doctor({ ...env, MILLRACE_KAFKA_BROKERS: '127.0.0.1:9' })
    expect(code).toBe(1)
    expect(out).toMatch(/^fail {2}kafka +.*(MILLRACE_KAFKA_BROKERS|can be reached)/m)
  })
})
