// A running admin API on a database of its own, and a client that speaks plain HTTP to it.
import { pino } from 'pino'
import { afterAll } from 'vitest'
import { startAdmin } from '../../src/admin/admin.ts'
import type { AdminDeps, SyncRun } from '../../src/admin/deps.ts'
import { openLive } from '../../src/control/live.ts'
import { insertToken } from '../../src/control/token.ts'
import { searchAttempts } from '../../src/deliver/attempt-store.ts'
import type { Live } from '../../src/domain/configuration.ts'
import type { Pool } from '../../src/postgres/sql.ts'
import type { Running } from '../../src/running.ts'
import { findSyncRun, requestSync } from '../../src/sync/request.ts'
import { aKeyring } from '../support/configuration.ts'
import { cloneDatabase } from '../support/database.ts'

export type Answered = {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  readonly body: any
  readonly headers: Headers
}

export type Client = (method: string, path: string, body?: unknown) => Promise<Answered>

export const clientOf =
  (url: string, token: string | null): Client =>
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return {
      status: response.status,
      body: isJson ? JSON.parse(text) : text,
      headers: response.headers,
    }
  }

export type Started = {
  readonly pool: Pool
  readonly running: Running
  readonly url: string
  readonly databaseUrl: string
  readonly admin: Client
  readonly viewer: Client
  readonly nobody: Client
  readonly lines: readonly string[]
  readonly live: Live
}

/** How the configuration follows what is saved; `isDeaf`: no notification reaches it. */
type Following = Pick<Parameters<typeof openLive>[0], 'limits'> & { readonly isDeaf?: boolean }

/** Call at the top of a describe or a file. */
export const startTestAdmin = async (
  over: Partial<AdminDeps> = {},
  following: Following = {},
): Promise<Started> => {
  const { pool, url: databaseUrl } = await cloneDatabase()
  const lines: string[] = []
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const clock = () => new Date()
  const { isDeaf = false, ...limited } = following
  const heard: Pool = isDeaf ? { ...pool, listen: async () => async () => undefined } : pool
  const live = await openLive({ pool: heard, logger, clock, keyring: aKeyring, ...limited })
  const running = await startAdmin({
    pool,
    live,
    refresh: live.refresh,
    clock,
    logger,
    host: '127.0.0.1',
    port: 0,
    addresses: { allowPrivate: true, allowed: [] },
    keyring: aKeyring,
    requestSync,
    findSyncRun,
    searchAttempts,
    ...over,
  })
  afterAll(async () => {
    await running.stop()
    await live.close()
  })
  const secret = 'given-admin-token'
  const asked = over.pool ?? pool
  await insertToken(asked, { name: 'environment', role: 'admin', secret })
  const viewer = await insertToken(asked, { name: 'watcher', role: 'viewer' })
  return {
    pool,
    running,
    url: running.url,
    databaseUrl,
    admin: clientOf(running.url, secret),
    viewer: clientOf(running.url, viewer?.secret ?? ''),
    nobody: clientOf(running.url, null),
    lines,
    live,
  }
}

/** Stands in for the sync stage: ends a requested run as told, in its table. */
export const endRun = async (
  pool: Pool,
  id: number,
  end: { readonly state: SyncRun['state']; readonly reason?: string },
): Promise<void> => {
  await pool.query(
    'update sync_run set state = $2, reason = $3, finished_at = requested_at where id = $1',
    [id, end.state, end.reason ?? null],
  )
}
