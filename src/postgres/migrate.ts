// Forward-only migrations: plain SQL files applied in order, each once, under one advisory lock.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { Fault } from '../fault.ts'
import type { Connection, Pool, Sql } from './sql.ts'

type Migration = { readonly number: number; readonly name: string; readonly sql: string }

const directory = new URL('../../migrations/', import.meta.url)

/** 'MILLRACE' read as a number; any constant would do, as long as every process uses the same. */
const lockKey = '5567930511325778757'

/** Applies what is missing; returns the names applied. Safe when many processes start at once. */
export const migrate = async (pool: Pool): Promise<readonly string[]> => {
  const migrations = await readMigrations()
  return pool.transaction(async (tx) => {
    await tx.query(`select pg_advisory_xact_lock(${lockKey})`)
    await tx.query(`create table if not exists migration (
      number int primary key,
      name text not null,
      sha256 text not null,
      applied_at timestamptz not null default clock_timestamp())`)
    const missing = await missingOf(tx, migrations)
    for (const migration of missing) {
      await tx.query(migration.sql)
      await tx.query('insert into migration (number, name, sha256) values ($1, $2, $3)', [
        migration.number,
        migration.name,
        sha256(migration.sql),
      ])
    }
    return missing.map(({ name }) => name)
  })
}

export type Standing = { readonly missing: readonly string[]; readonly unknown: readonly string[] }

/** What a start would apply, and what a newer version has applied; changes nothing. */
export const compareMigrations = async (sql: Sql): Promise<Standing> => {
  const migrations = await readMigrations()
  const { rows } = await sql.query<{ number: number; name: string }>(
    'select number, name from migration order by number',
  )
  const known = new Set(migrations.map(({ number }) => number))
  const done = new Set(rows.map(({ number }) => number))
  return {
    missing: migrations.filter(({ number }) => !done.has(number)).map(({ name }) => name),
    unknown: rows.filter(({ number }) => !known.has(number)).map(({ name }) => name),
  }
}

const readMigrations = async (): Promise<readonly Migration[]> => {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({
      number: Number.parseInt(name, 10),
      name,
      sql: await readFile(new URL(name, directory), 'utf8'),
    })),
  )
}

const missingOf = async (tx: Connection, migrations: readonly Migration[]) => {
  const { rows } = await tx.query<{ number: number; name: string; sha256: string }>(
    'select number, name, sha256 from migration order by number',
  )
  const known = new Map(migrations.map((migration) => [migration.number, migration]))
  for (const applied of rows) {
    const migration = known.get(applied.number)
    if (!migration)
      throw new Fault(
        'migration_newer',
        `the database has migration ${applied.name}, which this version does not know: start a version at least as new as the one that migrated it`,
      )
    if (sha256(migration.sql) !== applied.sha256)
      throw new Fault(
        'migration_changed',
        `migrations/${migration.name} differs from the one this database was migrated with: restore the file, changes go into a new migration`,
      )
  }
  const done = new Set(rows.map(({ number }) => number))
  return migrations.filter(({ number }) => !done.has(number))
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
