// The pg driver behind the Sql shape. int8 comes back as bigint, timestamptz as Date, bytea as Buffer.
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { copyOut } from './copy-out.ts'
import type { Connection, Listener, Pool, Rows, Sql, TransactionOptions } from './sql.ts'

type Options = {
  readonly url: string
  readonly connectionsMax: number
  /** Shown in pg_stat_activity. */
  readonly name: string
  /** An idle connection broke; the pool replaces it by itself. */
  readonly onError?: (error: Error) => void
  /** Server settings of every session. */
  readonly settings?: Readonly<Record<string, string>>
}

const int8 = 20

const idleInTransactionMs = 60_000

const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? BigInt : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig

export const openPool = (options: Options): Pool => {
  const given = Object.entries(options.settings ?? {}).map(([name, value]) => `-c ${name}=${value}`)
  const settings = {
    connectionString: options.url,
    application_name: options.name,
    types,
    ...(given.length > 0 ? { options: given.join(' ') } : {}),
  }
  const pool = new pg.Pool({
    ...settings,
    max: options.connectionsMax,
    connectionTimeoutMillis: 10_000,
    // A process that stops in the middle of a transaction must not hold back vacuum and everybody's locks.
    idle_in_transaction_session_timeout: idleInTransactionMs,
    // A server that vanished without a word is found out.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  })
  const onError = options.onError ?? (() => undefined)
  pool.on('error', onError)
  // Between being handed out and being listened to, a session can end: an event nobody heard would end the process.
  // Whoever has the session is told by its next statement.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const connect = <R>(use: (connection: Connection) => Promise<R>) => borrow(pool, use)
  return {
    query: queryOf(pool),
    connect,
    transaction: (work, transactionOptions) =>
      connect((connection) => transact(connection, work, transactionOptions)),
    listen: (channel, listener) =>
      listen({ open: () => new pg.Client(settings), onError }, channel, listener),
    close: () => pool.end(),
  }
}

const queryOf =
  (target: pg.Pool | pg.PoolClient): Sql['query'] =>
  <R extends object>(text: string, values?: readonly unknown[]) =>
    target.query(text, values as unknown[] | undefined) as unknown as Promise<Rows<R>>

const borrow = async <R>(pool: pg.Pool, use: (connection: Connection) => Promise<R>) => {
  const client = await pool.connect()
  let broken: Error | undefined
  const onError = (error: Error) => {
    broken ??= error
  }
  client.on('error', onError)
  try {
    return await use(connectionOf(client))
  } catch (error) {
    if ((error as { code?: unknown }).code !== undefined) throw error
    // A failed COPY or protocol error leaves the connection in an unknown state: never reuse it.
    broken ??= error as Error
    // What a session ended of, the driver tells once; whatever is asked of it afterwards only fails.
    throw broken
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

const connectionOf = (client: pg.PoolClient): Connection => ({
  query: queryOf(client),
  copyIn: (text, chunks) => pipeline(chunks, client.query(copyFrom(text))),
  copyOut: (text) => copyOut(client, text),
})

export const transact = async <R>(
  connection: Connection,
  work: (tx: Connection) => Promise<R>,
  options: TransactionOptions = {},
): Promise<R> => {
  const idle =
    options.idleMs === undefined
      ? ''
      : `; set local idle_in_transaction_session_timeout = ${options.idleMs}`
  await connection.query(`begin isolation level ${options.isolation ?? 'read committed'}${idle}`)
  try {
    const result = await work(connection)
    await connection.query('commit')
    return result
  } catch (error) {
    // The first error is the one that matters; a rollback that fails means the connection is gone.
    await connection.query('rollback').catch(() => undefined)
    throw error
  }
}

const reconnectAfterMs = 1_000

type Listening = { readonly open: () => pg.Client; readonly onError: (error: Error) => void }

const listen = async ({ open, onError }: Listening, channel: string, listener: Listener) => {
  let closed = false
  let client: pg.Client | null = null
  let timer: NodeJS.Timeout | undefined
  const attach = async () => {
    const next = open()
    next.on('notification', ({ payload }) => listener.notified(payload ?? ''))
    next.on('error', onError)
    next.on('end', () => retry())
    await next.connect()
    await next.query(`listen ${pg.escapeIdentifier(channel)}`)
    client = next
    if (closed) await next.end()
  }
  const retry = () => {
    if (closed) return
    client = null
    clearTimeout(timer)
    timer = setTimeout(() => attach().then(listener.reconnected, failed), reconnectAfterMs)
  }
  const failed = (error: Error) => {
    onError(error)
    retry()
  }
  await attach()
  return async () => {
    closed = true
    clearTimeout(timer)
    await client?.end()
  }
}
