// How many processes collect: those with the role whose heart beats, counted again and again.
import { expect, test } from 'vitest'
import { openCollectors } from '../../src/postgres/collectors.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { pool } = await cloneDatabase()

const at = (seconds: number) => new Date(Date.parse('2026-01-01T00:00:00Z') + seconds * 1_000)

const beat = (roles: readonly string[], seconds: number) =>
  pool.query(
    `insert into process (id, host, pid, version, roles, configuration_version, started_at, beat_at)
     values (gen_random_uuid(), 'h', 1, '0', $1, 1, $2, $2)`,
    [roles, at(seconds)],
  )

test('only those that live and collect are counted, and one while there is none', async () => {
  let now = at(0)
  const errors: unknown[] = []
  let isAway = false
  const sql = {
    query: ((text: string, values?: readonly unknown[]) =>
      isAway ? Promise.reject(new Error('away')) : pool.query(text, values)) as typeof pool.query,
  }
  const collectors = await openCollectors({
    sql,
    clock: () => now,
    onError: (error) => errors.push(error),
    limits: { pollEveryMs: 5 },
  })
  expect(collectors.now()).toBe(1)
  await beat(['collect'], 0)
  await beat(['admin', 'collect'], 0)
  await beat(['deliver'], 0)
  await until(() => collectors.now() === 2, 'two that collect')
  await beat(['collect'], 9)
  now = at(10)
  await until(() => collectors.now() === 3, 'three that collect')
  isAway = true
  now = at(11)
  await until(() => errors.length > 2, 'failed counts')
  expect(collectors.now()).toBe(3)
  isAway = false
  await until(() => collectors.now() === 1, 'the dead being forgotten')
  now = at(60)
  await pool.query('delete from process')
  await collectors.close()
  expect(collectors.now()).toBe(1)
})
