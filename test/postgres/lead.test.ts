// Leading: one at a time, and nobody keeps the lead who could not give it back.
import { expect, test } from 'vitest'
import { leadOnce } from '../../src/postgres/lead.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'

const { pool } = await cloneDatabase()
const key = '4242'

const leads = async (by: Pick<Pool, 'connect'> = pool): Promise<boolean> => {
  let isLed = false
  await leadOnce(by, {
    key,
    term: async () => {
      isLed = true
    },
  })
  return isLed
}

/** A pool whose sessions cannot unlock. */
const unable: Pick<Pool, 'connect'> = {
  connect: (use) =>
    pool.connect((seat) =>
      use({
        ...seat,
        query: (text, values) => {
          if (!/advisory_unlock/.test(text)) return seat.query(text, values)
          return Promise.reject(Object.assign(new Error('canceled'), { code: '57014' }))
        },
      }),
    ),
}

const holders = async () => {
  const { rows } = await pool.query<{ n: number }>(
    `select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = ${key}
        and database = (select oid from pg_database where datname = current_database())`,
  )
  return rows[0]?.n
}

test('one leads at a time, and the next one as soon as the term is over', async () => {
  await leadOnce(pool, {
    key,
    term: async () => {
      expect(await leads()).toBe(false)
    },
  })
  expect(await leads()).toBe(true)
  expect(await holders()).toBe(0)
})

test('a session that could not unlock is ended, and the lock with it', async () => {
  await expect(leads(unable)).rejects.toThrow('canceled')
  await expect.poll(holders, { timeout: 30_000 }).toBe(0)
  expect(await leads()).toBe(true)
})

test('what a term failed of is told, whatever becomes of its session', async () => {
  const failing = async () => {
    throw Object.assign(new Error('the term failed'), { code: '40001' })
  }
  for (const by of [pool, unable])
    await expect(leadOnce(by, { key, term: failing })).rejects.toThrow('the term failed')
  await expect.poll(holders, { timeout: 30_000 }).toBe(0)
  expect(await leads()).toBe(true)
})
