// How the commands speak to the admin API of a running Millrace, and how they tell what it refused.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parseText } from '../control/file.ts'
import type { Problem } from '../control/problem.ts'
import { deleteToken, insertToken } from '../control/token.ts'
import { findPostgres } from '../postgres/embedded.ts'
import { type Call, flag, text } from './command.ts'

/** Options every command that talks to the admin API takes. */
export const adminOptions = {
  'admin-url': { type: 'string' },
  'admin-token': { type: 'string' },
  json: { type: 'boolean' },
} as const

export type Ask = <T>(request: {
  readonly method?: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly body?: unknown
}) => Promise<T>

/** For what `Ask` cannot do. */
export type Admin = { readonly url: string; readonly token: string }

type Failure = { readonly lines: readonly string[]; readonly code: 1 | 2 }

/** Ends the command: `withAdmin` prints the lines and answers the code. */
export const failing = (lines: readonly string[], code: 1 | 2 = 1): Error =>
  Object.assign(new Error(lines[0]), { failure: { lines, code } satisfies Failure })

export const withAdmin = async (
  call: Call,
  use: (ask: Ask, admin: Admin) => Promise<number>,
): Promise<number> => {
  const given = text(call, 'admin-url')
  const url = (given ?? localUrl(call)).replace(/\/+$/, '')
  try {
    await reach(url)
    return await withToken(call, { url, isLocal: given === null }, (token) =>
      use(askOf(url, token), { url, token }),
    )
  } catch (error) {
    const { failure } = error as { failure?: Failure }
    if (!failure) throw error
    for (const line of failure.lines) call.terminal.err(line)
    return failure.code
  }
}

const localUrl = ({ config }: Call): string => {
  const host = config.host === '0.0.0.0' || config.host === '::' ? '127.0.0.1' : config.host
  return `http://${host.includes(':') ? `[${host}]` : host}:${config.adminPort}`
}

const reach = async (url: string): Promise<void> => {
  await fetch(`${url}/healthz`).catch(() => {
    throw failing([
      `no Millrace answers at ${url}: start one with "npm start", or name another with --admin-url`,
    ])
  })
}

/**
 * Whoever can open the local database may do anything anyway: without a token given, the command
 * makes itself one there and deletes it when it is done.
 */
const withToken = async (
  call: Call,
  { url, isLocal }: { readonly url: string; readonly isLocal: boolean },
  use: (token: string) => Promise<number>,
): Promise<number> => {
  const given = text(call, 'admin-token') ?? call.config.adminToken
  if (given !== null) return use(given)
  if (!isLocal) throw failing(['give the token with --admin-token or MILLRACE_ADMIN_TOKEN'], 2)
  await sharesDatabase(call, url)
  const pool = await call.database()
  const name = `cli ${randomBytes(6).toString('hex')}`
  const made = await insertToken(pool, { name, role: 'admin' })
  if (!made) throw failing([`the token name "${name}" is taken: try again`])
  try {
    return await use(made.secret)
  } finally {
    await deleteToken(pool, made.token.id)
  }
}

/** A database started for the command alone is not that of the Millrace which answers. */
const sharesDatabase = async ({ config }: Call, url: string): Promise<void> => {
  if (config.databaseUrl !== null || (await findPostgres(config.dataDir)) !== null) return
  throw failing(
    [
      `the Millrace at ${url} does not run on ${config.dataDir}: set MILLRACE_DATA_DIR to its data directory, or give its token with --admin-token or MILLRACE_ADMIN_TOKEN`,
    ],
    2,
  )
}

type ErrorBody = {
  readonly error?: { readonly message: string; readonly problems?: readonly Problem[] }
}

const askOf =
  (url: string, token: string): Ask =>
  async <T>({ method = 'GET', path, body }: Parameters<Ask>[0]) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: Error) => {
      throw failing([`${url} stopped answering: ${error.message}`])
    })
    const answer: unknown = await response.json().catch(() => null)
    if (response.ok) return answer as T
    const { error } = (answer ?? {}) as ErrorBody
    throw failing(
      error?.problems ? error.problems.map(lineOf) : [error?.message ?? `HTTP ${response.status}`],
      error?.problems ? 2 : 1,
    )
  }

export const lineOf = ({ path, message, code }: Problem): string =>
  code === 'workspace_required'
    ? message.replace('by workspaceId', 'with --workspace NAME')
    : `${path === '' ? '/' : path}: ${message} (${code})`

type Workspaces = { readonly workspaces: readonly { readonly id: number; readonly name: string }[] }

/** The id behind --workspace; `null` when it was not given. */
export const workspaceOf = async (call: Call, ask: Ask): Promise<number | null> => {
  const name = text(call, 'workspace')
  if (name === null) return null
  const { workspaces } = await ask<Workspaces>({ path: '/admin/v1/workspaces' })
  return theOne(workspaces, 'workspace', name).id
}

/** Names are unique within a workspace only: with several of one name --workspace must decide. */
export const theOne = <T extends { readonly name: string }>(
  entities: readonly T[],
  kind: string,
  name: string,
): T => {
  const [found, another] = entities.filter((entity) => entity.name === name)
  if (!found) throw failing([`there is no ${kind} named "${name}"`])
  if (another) throw failing([`several workspaces have a ${kind} "${name}": give --workspace`], 2)
  return found
}

/** A value of an option: the JSON or YAML of a file, or the value itself when it begins as one. */
export const readValue = async (given: string): Promise<unknown> => {
  const content = /^\s*[{[]/.test(given)
    ? given
    : await readFile(given, 'utf8').catch((error: Error) => {
        throw failing([`${given} cannot be read: ${error.message}`], 2)
      })
  const parsed = parseText(content)
  if ('problems' in parsed) throw failing(parsed.problems.map(lineOf), 2)
  return parsed.value
}

export const yesOrNo = (given: string, option: string): boolean => {
  if (given !== 'yes' && given !== 'no') throw failing([`--${option} takes "yes" or "no"`], 2)
  return given === 'yes'
}

export const narrowed = (path: string, workspaceId: number | null): string =>
  workspaceId === null ? path : `${path}?workspaceId=${workspaceId}`

/** Rows under a heading, or the answer itself with --json. */
export const print = (
  call: Call,
  answer: unknown,
  rows: readonly (readonly [string, ...string[]])[],
): void => {
  if (flag(call, 'json')) {
    call.terminal.out(JSON.stringify(answer, null, 2))
    return
  }
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length))) ?? []
  for (const row of rows)
    call.terminal.out(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
