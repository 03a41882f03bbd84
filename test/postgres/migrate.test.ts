import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migrate.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { cloneDatabase } from '../support/database.ts'

const database = await cloneDatabase()

test('a second run applies nothing', async () => {
  expect(await migrate(database.pool)).toEqual([])
})

test('twenty at once on an empty database apply each migration once', async () => {
  await database.pool.query('create database empty')
  const url = database.url.replace(/\/test_[0-9a-f]+\?/, '/empty?')
  const pool = openPool({ url, connectionsMax: 20, name: 'test' })
  const applied = await Promise.all(Array.from({ length: 20 }, () => migrate(pool)))
  expect(applied.flat()).toEqual([...new Set(applied.flat())])
  expect(applied.flat().length).toBeGreaterThan(0)
  await pool.close()
  await database.pool.query('drop database empty with (force)')
})

test('a database that a newer version migrated is refused', async () => {
  await database.pool.query("insert into migration values (9999, '9999_later.sql', 'x')")
  await expect(migrate(database.pool)).rejects.toMatchObject({ code: 'migration_newer' })
  await database.pool.query('delete from migration where number = 9999')
})

test('a changed migration is refused', async () => {
  await database.pool.query("update migration set sha256 = 'x' where number = 3")
  await expect(migrate(database.pool)).rejects.toMatchObject({ code: 'migration_changed' })
})
