// The first start: a workspace, a source and an admin token, so that one command is enough to begin.
import { defaultSourceSettings } from '../domain/configuration.ts'
import type { Connection, Pool, Sql } from '../postgres/sql.ts'
import { insertAudit } from './audit.ts'
import { hashOf, newSecretKey, newWriteKey } from './credential.ts'
import { lockConfiguration } from './state.ts'
import { insertSource, insertWorkspace } from './store.ts'
import { insertToken } from './token.ts'

export type FirstStart = {
  /** What was made now; `null` when a workspace was already there. Its secret key is shown once. */
  readonly created: {
    readonly workspaceId: number
    readonly sourceId: number
    readonly writeKey: string
    readonly secretKey: string
  } | null
  /** A write key that works: the one just made, else that of the oldest enabled source. */
  readonly writeKey: string | null
  /** The token given, or the one just made; `null` when it was made and printed at an earlier start. */
  readonly token: string | null
}

/** Safe when many processes start at once: one of them creates, the others find. */
export const ensureFirstStart = (
  pool: Pool,
  options: { readonly token?: string | null } = {},
): Promise<FirstStart> =>
  pool.transaction(async (tx) => {
    await lockConfiguration(tx)
    const token = options.token ? await acceptToken(tx, options.token) : await firstToken(tx)
    const { rows } = await tx.query('select 1 from workspace limit 1')
    const created = rows.length === 0 ? await createDefaults(tx) : null
    return { created, writeKey: created?.writeKey ?? (await oldestWriteKey(tx)), token }
  })

const environmentToken = 'environment'

/** The environment's token replaces the one it gave before: taking it out of use is one restart. */
const acceptToken = async (tx: Sql, token: string): Promise<string> => {
  const { rows } = await tx.query<{ name: string; role: string }>(
    'select name, role from admin_token where hash = $1',
    [hashOf(token)],
  )
  if (rows[0]?.role === 'admin') return token
  await tx.query('delete from admin_token where name = $1 or hash = $2', [
    environmentToken,
    hashOf(token),
  ])
  await insertToken(tx, { name: environmentToken, role: 'admin', secret: token })
  return token
}

const firstToken = async (tx: Sql): Promise<string | null> => {
  const { rows } = await tx.query("select 1 from admin_token where role = 'admin' limit 1")
  if (rows.length > 0) return null
  const inserted = await insertToken(tx, { name: 'first', role: 'admin' })
  return inserted?.secret ?? null
}

const createDefaults = async (tx: Connection) => {
  const workspace = await insertWorkspace(tx, {
    name: 'default',
    regionalAccess: false,
    grandfathered: false,
  })
  const writeKey = newWriteKey()
  const secretKey = newSecretKey()
  const sourceId = await insertSource(tx, {
    workspaceId: workspace.id,
    name: 'default',
    class: 'server',
    writeKey,
    secretKeyHash: hashOf(secretKey).toString('hex'),
    enabled: true,
    settings: defaultSourceSettings,
  })
  const entry = { actor: 'first start', action: 'created', name: 'default', changes: {} } as const
  await insertAudit(tx, [
    { ...entry, kind: 'workspace', entityId: workspace.id },
    { ...entry, kind: 'source', entityId: sourceId },
  ])
  return { workspaceId: workspace.id, sourceId, writeKey, secretKey }
}

const oldestWriteKey = async (tx: Sql): Promise<string | null> => {
  const { rows } = await tx.query<{ writeKey: string }>(
    'select write_key as "writeKey" from source where enabled order by id limit 1',
  )
  return rows[0]?.writeKey ?? null
}
