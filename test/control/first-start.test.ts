import { describe, expect, test } from 'vitest'
import { ensureFirstStart } from '../../src/control/first-start.ts'
import { findToken } from '../../src/control/token.ts'
import { cloneDatabase } from '../support/database.ts'

const countOf = async (
  pool: { query: (text: string) => Promise<{ rows: object[] }> },
  table: string,
) =>
  Number((await pool.query(`select count(*) as n from ${table}`)).rows.map(Object.values)[0]?.[0])

describe('the first start', async () => {
  const { pool } = await cloneDatabase()

  test('ten processes starting at once make one workspace, one source and one token', async () => {
    const starts = await Promise.all(Array.from({ length: 10 }, () => ensureFirstStart(pool)))
    const created = starts.flatMap((start) => start.created ?? [])
    expect(created).toHaveLength(1)
    expect(starts.filter(({ token }) => token !== null)).toHaveLength(1)
    expect(new Set(starts.map(({ writeKey }) => writeKey))).toEqual(new Set([created[0]?.writeKey]))
    expect(await countOf(pool, 'source')).toBe(1)
    expect(await countOf(pool, 'admin_token')).toBe(1)
    expect(await countOf(pool, 'audit_log')).toBe(2)
  })

  test('a later start makes nothing and cannot show the token again', async () => {
    const start = await ensureFirstStart(pool)
    expect(start.created).toBeNull()
    expect(start.token).toBeNull()
    expect(start.writeKey).toMatch(/^wk_/)
  })

  test('no secret is stored in the clear', async () => {
    const { rows } = await pool.query<{ row: string }>(
      'select source::text as row from source union all select admin_token::text from admin_token',
    )
    expect(rows.some(({ row }) => /sk_|at_/.test(row))).toBe(false)
  })

  test("the environment's token works beside the first one, and changing it retires the old", async () => {
    expect((await ensureFirstStart(pool, { token: 'one' })).token).toBe('one')
    await ensureFirstStart(pool, { token: 'one' })
    expect(await findToken(pool, 'one')).toMatchObject({ name: 'environment', role: 'admin' })
    await ensureFirstStart(pool, { token: 'two' })
    expect(await findToken(pool, 'one')).toBeNull()
    expect(await findToken(pool, 'two')).toMatchObject({ role: 'admin' })
    expect(await countOf(pool, 'admin_token')).toBe(2)
  })
})
