import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Fault } from '../../src/fault.ts'
import { isAway, isPassing } from '../../src/postgres/away.ts'
import { openPool } from '../../src/postgres/pool.ts'
import { type Pool, sqlState } from '../../src/postgres/sql.ts'
import { cloneDatabase } from '../support/database.ts'
import { ownFolder } from '../support/folder.ts'
import { openPostgresProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/until.ts'

test('a write that the other side no longer reads is a lost connection, not a refused statement', async () => {
  const folder = await ownFolder('sql')
  const server = createServer((socket) => socket.destroy()).listen(join(folder, 'socket'))
  await once(server, 'listening')
  // It goes on writing though the other side has closed, of which the driver may not have heard either.
  const client = connect({ path: join(folder, 'socket'), allowHalfOpen: true })
  client.resume().once('end', () => client.write('x'))
  const [error] = await once(client, 'error')
  server.close()
  expect((error as { code?: unknown }).code).toBe('EPIPE')
  expect(sqlState(error)).toBe(null)
  expect(isAway(error)).toBe(true)
  expect(isPassing(error)).toBe(true)
})

test('no code of the operating system is taken for an SQLSTATE', () => {
  const codes = Object.keys(constants.errno)
  expect(codes.filter((code) => code.length === 5)).toContain('EPIPE')
  expect(codes.filter((code) => sqlState({ code }) !== null)).toEqual([])
  for (const code of ['08006', '25P03', '40001', '57P01', 'XX000', 'P0001', 'HV00B', 'F0000'])
    expect(sqlState({ code })).toBe(code)
})

test('sessions that Postgres ended for standing still in a transaction are a database that is away', () => {
  for (const code of ['25P03', '25P04', '57P05']) {
    expect(isAway({ code })).toBe(true)
    expect(isPassing({ code })).toBe(true)
  }
  // A statement in a transaction that had failed is a mistake, which no wait mends.
  expect(isAway({ code: '25P02' })).toBe(false)
  expect(isPassing({ code: '25P02' })).toBe(false)
})

test('a server that cannot be found or reached is away', () => {
  for (const code of ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'EADDRNOTAVAIL']) {
    expect(isAway({ code })).toBe(true)
    expect(isPassing({ code })).toBe(true)
  }
})

test('what gave way to another is begun anew, though nothing was away', () => {
  for (const code of ['40001', '40P01', '57014']) {
    expect(isAway({ code })).toBe(false)
    expect(isPassing({ code })).toBe(true)
  }
  for (const retriable of [true, false])
    expect(isPassing(new Fault('log_unavailable', 'away', { retriable }))).toBe(retriable)
})

test('a mistake of ours is no database that is away, whatever it speaks of', () => {
  const mistake = new TypeError("Cannot read properties of null (reading 'connection')")
  expect(isAway(mistake)).toBe(false)
  expect(isAway(new Error(mistake.message))).toBe(true)
})

test('a transaction that stands still for longer than it may is ended by Postgres, and its locks with it', async () => {
  const database = await cloneDatabase()
  const pool = openPool({ url: database.url, connectionsMax: 2, name: 'stands-still' })
  const standing = async () => {
    const { rows } = await database.pool.query(
      "select 1 from pg_stat_activity where application_name = 'stands-still' and state like 'idle in %'",
    )
    return rows.length
  }
  const still = pool.transaction(
    async (tx) => {
      await tx.query('select pg_advisory_xact_lock(1)')
      await until(async () => (await standing()) === 0, 'Postgres has ended it')
      await tx.query('select 1')
    },
    { idleMs: 100 },
  )
  const error = await still.catch((cause: unknown) => cause)
  expect(sqlState(error)).toBe('25P03')
  expect(isAway(error)).toBe(true)
  // The next one is not bound by it.
  await pool.transaction((tx) => tx.query('select pg_advisory_xact_lock(1)'))
  await pool.close()
})

test.each([
  ['a query', (pool: Pool) => pool.query('select 1')],
  ['a transaction', (pool: Pool) => pool.transaction((tx) => tx.query('select 1'))],
])('a session that ends in the moment it begins costs %s, and nothing else', async (_, ask) => {
  const { url } = await cloneDatabase()
  const proxy = await openPostgresProxy(url)
  const pool = openPool({ url: proxy.url, connectionsMax: 1, name: 'test' })
  proxy.endNext()
  const failure = await ask(pool).catch((error: unknown) => error)
  expect(isAway(failure)).toBe(true)
  await ask(pool)
  await pool.close()
  await proxy.close()
})
