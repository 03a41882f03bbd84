// A database of its own for a test file, cloned from the migrated template in milliseconds.
import { randomBytes } from 'node:crypto'
import { afterAll, inject } from 'vitest'
import { openPool } from '../../src/postgres/pool.ts'
import type { Pool } from '../../src/postgres/sql.ts'

export type Database = { readonly url: string; readonly pool: Pool }

/** Call at the top of a describe or a file; dropped after it. */
export const cloneDatabase = async (): Promise<Database> => {
  const name = `test_${randomBytes(6).toString('hex')}`
  const base = inject('postgresUrl')
  const admin = openPool({ url: base, connectionsMax: 1, name: 'test' })
  await admin.query(`create database ${name} template template_millrace`)
  const url = base.replace('/postgres?', `/${name}?`)
  const pool = openPool({ url, connectionsMax: 20, name: 'test' })
  afterAll(async () => {
    await pool.close()
    await admin.query(`drop database ${name} with (force)`)
    await admin.close()
  })
  return { url, pool }
}
