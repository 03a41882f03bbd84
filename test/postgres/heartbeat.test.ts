// The heartbeat row: there while its process lives, gone after it stops or died a minute ago.
import { expect, test } from 'vitest'
import { startHeartbeat } from '../../src/postgres/heartbeat.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { pool } = await cloneDatabase()

const rows = async () => {
  const { rows } = await pool.query<{ roles: string[]; version: bigint; at: Date }>(
    'select roles, configuration_version as version, beat_at as at from process order by started_at',
  )
  return rows
}

const deps = {
  sql: pool,
  version: '0.1.0',
  roles: ['collect'],
  onError: (error: unknown) => {
    throw error
  },
  limits: { beatEveryMs: 5 },
}

test('it tells the roles, and the configuration taken up since', async () => {
  let version = 1n
  let now = new Date('2026-01-01T00:00:00Z')
  const clock = () => now
  const running = await startHeartbeat({ ...deps, clock, configurationVersion: () => version })
  expect(await rows()).toEqual([{ roles: ['collect'], version: 1n, at: now }])
  version = 2n
  now = new Date('2026-01-01T00:00:02Z')
  await until(async () => (await rows())[0]?.version === 2n)
  expect((await rows())[0]?.at).toEqual(now)
  await running.stop()
  expect(await rows()).toEqual([])
})

test('a process that died is forgotten a minute later', async () => {
  let now = new Date('2026-01-01T00:00:00Z')
  const clock = () => now
  await pool.query(
    `insert into process values (gen_random_uuid(), 'h', 1, '0', '{sync}', 1, $1, $1)`,
    [now],
  )
  now = new Date('2026-01-01T00:01:00Z')
  const running = await startHeartbeat({ ...deps, clock, configurationVersion: () => 1n })
  expect(await rows()).toHaveLength(2)
  now = new Date('2026-01-01T00:01:01Z')
  await until(async () => (await rows()).length === 1)
  await running.stop()
})

test('a missed beat is told and the next one follows', async () => {
  let broken = false
  const missed: unknown[] = []
  const sql = {
    query: ((text: string, values?: readonly unknown[]) =>
      broken ? Promise.reject(new Error('away')) : pool.query(text, values)) as typeof pool.query,
  }
  const running = await startHeartbeat({
    ...deps,
    sql,
    clock: () => new Date(),
    configurationVersion: () => (missed.length > 0 ? 7n : 1n),
    onError: (error) => missed.push(error),
  })
  broken = true
  await until(async () => missed.length > 0)
  broken = false
  await until(async () => (await rows())[0]?.version === 7n)
  await running.stop()
})
