// Rows that Postgres copies out in its binary form.
import { expect, test } from 'vitest'
import { dateAt, rowsOf } from '../../src/postgres/binary-copy.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()

const copied = async (query: string) =>
  rowsOf(
    await pool.connect((connection) =>
      connection.copyOut(`copy (${query}) to stdout (format binary)`),
    ),
  )

test('rows come in order, with nulls, empty fields and bytes of any length', async () => {
  const rows = await copied(
    `select n::int, null::text, ''::text, case when n % 2 = 0 then repeat('x', n * 997)::bytea end
       from generate_series(1, 300) n order by n`,
  )
  expect(rows.map(([n]) => n?.readInt32BE(0))).toEqual(
    Array.from({ length: 300 }, (_, at) => at + 1),
  )
  for (const [at, [, nothing, empty, bytes]] of rows.entries()) {
    const n = at + 1
    expect([nothing, empty?.length]).toEqual([null, 0])
    expect(bytes?.equals(Buffer.alloc(n * 997, 'x')) ?? null).toBe(n % 2 === 0 ? true : null)
  }
})

test('no rows are no rows', async () => {
  expect(await copied('select 1 where false')).toEqual([])
})

test('instants are exact to the millisecond, before and after the year 2000', async () => {
  for (const iso of [
    '1970-01-01T00:00:00.000Z',
    '1999-12-31T23:59:59.999Z',
    '2026-11-22T04:00:00.123Z',
  ]) {
    const [row] = await copied(`select '${iso}'::timestamptz`)
    expect(dateAt(row?.[0] as Buffer).toISOString()).toBe(iso)
  }
})

test('a statement that fails rejects, half-way too, and its connection goes on', async () => {
  await pool.connect(async (connection) => {
    const halfWay =
      'copy (select 1 / (500 - n) from generate_series(1, 1000) n) to stdout (format binary)'
    await expect(connection.copyOut(halfWay)).rejects.toThrow('division by zero')
    await expect(connection.copyOut('copy (select) to nowhere')).rejects.toThrow()
    expect((await connection.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })
})
