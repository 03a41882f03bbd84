// Erasing from an attempt log of several days, each longer than what is read at once.
import { expect, test } from 'vitest'
import { eraseAttempts } from '../../src/erase/trace-store.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

test('a log of any length is looked through to its end, in all its days', async () => {
  for (const day of [1, 2]) {
    await pool.query(
      `create table attempt_test_${day} partition of attempt
         for values from ('2026-01-0${day}T00:00Z') to ('2026-01-0${day + 1}T00:00Z')`,
    )
    // Five rows to a block, so that there are more than two readings in a day.
    await pool.query(
      `insert into attempt (started_at, topic, partition, log_offset, destination_id, chain, message_id,
         attempt, url, duration_ms, outcome, response_head)
       select $1, 'calls', 0, n, 1, n % 3, 'm', 1, repeat('u', 1500), 1, 'final',
              case when n % 3 = 1 then 'no secret-u1' else 'no secret-u2' end
         from generate_series(1, $2::int) as n`,
      [new Date(`2026-01-0${day}T12:00Z`), 1_500 * day],
    )
  }
  const forgotten = {
    ...{ workspaceId: 1, chains: new Set([0n]) },
    ...{ userIds: new Set(['secret-u1']), anonymousIds: new Set<string>() },
  }
  expect(await eraseAttempts(pool, forgotten)).toBe(3_000)
  const { rows } = await pool.query(
    `select chain::int as chain, response_head as answer, count(*)::int as count
       from attempt group by 1, 2 order by 1`,
  )
  expect(rows).toEqual([
    { chain: 1, answer: null, count: 1_500 },
    { chain: 2, answer: 'no secret-u2', count: 1_500 },
  ])
  expect(await eraseAttempts(pool, forgotten)).toBe(0)
})
