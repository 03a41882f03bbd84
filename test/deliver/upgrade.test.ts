import { readdir, readFile } from 'node:fs/promises'
import { expect, inject, test } from 'vitest'
import { loadLedger, sumLedger } from '../../src/deliver/ledger.ts'
import { openPool } from '../../src/postgres/pool.ts'

const directory = new URL('../../migrations/', import.meta.url)

const apply = async (sql: { query(text: string): Promise<unknown> }, from: number, to: number) => {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).toSorted()
  for (const name of names) {
    const number = Number.parseInt(name, 10)
    if (number >= from && number <= to)
      await sql.query(await readFile(new URL(name, directory), 'utf8'))
  }
}

test('what an earlier version had parked, buried and logged is all there afterwards', async () => {
  const base = inject('postgresUrl')
  const admin = openPool({ url: base, connectionsMax: 1, name: 'test' })
  const name = `upgrade_${process.pid}`
  await admin.query(`create database ${name}`)
  const pool = openPool({
    url: base.replace('/postgres?', `/${name}?`),
    connectionsMax: 1,
    name: 'test',
  })
  await pool.query(`set time zone 'Asia/Kolkata'`)
  await apply(pool, 1, 20)
  const body = Buffer.from('{"a":"é\\u0000"}')
  await pool.query(
    `insert into parked (topic, partition, log_offset, destination_id, chain, message_id, type, reason, body, parked_at, next_at)
     select 'calls', 0, n, 1, n, 'm' || n, 'track', 'temporary', case when n < 90 then $1::bytea end,
       timestamptz '2024-01-01 00:10Z' + n * interval '7 minutes', timestamptz '2024-01-02' from generate_series(1, 100) n`,
    [body],
  )
  await pool.query(
    `insert into dead (topic, partition, log_offset, destination_id, message_id, type, reason, attempts, body, dead_at)
     select 'calls', 0, 1000 + n, 1, 'd' || n, 'track', 'expired', 3, $1::bytea, timestamptz '2024-01-01' from generate_series(1, 7) n`,
    [body],
  )
  await pool.query(
    `insert into attempt (started_at, topic, partition, log_offset, destination_id, message_id, attempt, url, duration_ms, outcome)
     select timestamptz '2024-01-01 23:00Z' + n * interval '30 minutes', 'calls', 0, n, 1, 'm' || n, 1, 'http://a', 5, 'delivered'
       from generate_series(1, 50) n`,
  )
  await apply(pool, 21, 9_999)
  const { rows: parked } = await pool.query<{ n: number; bodies: number; bytes: number }>(
    `select count(*)::int as n, count(b.bytes)::int as bodies,
            (count(*) filter (where b.bytes = $1))::int as same, sum(body_bytes)::int as bytes
       from parked p left join parked_body b on b.body_id = p.body_id and b.created_at = p.body_at`,
    [body],
  )
  expect(parked).toEqual([{ n: 100, bodies: 89, same: 89, bytes: 89 * body.length }])
  const { rows: attempts } = await pool.query(
    'select count(*)::int as n, min(log_offset)::int as first from attempt group by tableoid order by 2',
  )
  expect(attempts).toEqual([
    { n: 1, first: 1 },
    { n: 48, first: 2 },
    { n: 1, first: 50 },
  ])
  expect(sumLedger(await loadLedger(pool))).toMatchObject({ parked: 100n, dead: 7n, gap: 0n })
  await pool.close()
  await admin.query(`drop database ${name} with (force)`)
  await admin.close()
})
