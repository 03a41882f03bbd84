// The configuration as Postgres holds it, read in one go: what snapshots, checks and apply start from.
import {
  type Audience,
  type Destination,
  defaultSourceSettings,
  type Source,
  type SourceSettings,
  type Workspace,
} from '../domain/configuration.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import { loadDestinations } from './destination-store.ts'
import type { Keyring } from './secret.ts'

/** Mutable on purpose: a saver enters what it wrote, so that the next check sees it. */
export type State = {
  readonly version: bigint
  readonly workspaces: Map<number, Workspace>
  readonly sources: Map<number, Source>
  readonly destinations: Map<number, Destination>
  readonly audiences: Map<number, Audience>
  /** `workspaceId:key` of every audience there is or ever was. */
  readonly audienceKeys: Set<string>
}

/**
 * Holds every other writer of the configuration off until this transaction ends. Writers take this
 * lock first, so checks against the state they loaded stay true, and the trigger cannot deadlock.
 */
export const lockConfiguration = async (tx: Sql): Promise<void> => {
  await tx.query('select version from configuration_version for update')
}

export const findVersion = async (sql: Sql): Promise<bigint> => {
  const { rows } = await sql.query<{ version: bigint }>('select version from configuration_version')
  return rows[0]?.version ?? 0n
}

/** Consistent only inside a repeatable read transaction, or under `lockConfiguration`. */
export const loadState = async (sql: Sql, keyring: Keyring | null): Promise<State> => ({
  version: await findVersion(sql),
  workspaces: byId(await loadWorkspaces(sql)),
  sources: byId(await loadSources(sql)),
  destinations: byId(await loadDestinations(sql, keyring)),
  audiences: byId(await loadAudiences(sql)),
  audienceKeys: await loadAudienceKeys(sql),
})

/** Everything as of one moment; without a keyring every secret reads `(hidden)`. */
export const readState = (pool: Pool, keyring: Keyring | null = null): Promise<State> =>
  pool.transaction((tx) => loadState(tx, keyring), { isolation: 'repeatable read' })

const byId = <T extends { readonly id: number }>(rows: readonly T[]): Map<number, T> =>
  new Map(rows.map((row) => [row.id, row]))

const loadWorkspaces = async (sql: Sql): Promise<readonly Workspace[]> => {
  const { rows } = await sql.query<Workspace>(
    `select id, name, regional_access as "regionalAccess", grandfathered
       from workspace order by id`,
  )
  return rows
}

type SourceRow = Omit<Source, 'settings'> & { readonly settings: Partial<SourceSettings> }

const loadSources = async (sql: Sql): Promise<readonly Source[]> => {
  const { rows } = await sql.query<SourceRow>(
    `select id, workspace_id as "workspaceId", name, class, write_key as "writeKey",
            encode(secret_key_hash, 'hex') as "secretKeyHash", enabled, settings
       from source order by id`,
  )
  return rows.map((row) => ({ ...row, settings: { ...defaultSourceSettings, ...row.settings } }))
}

type AudienceRow = Omit<Audience, 'condition' | 'syncEveryMs'> & {
  readonly condition: string
  readonly syncEveryMs: bigint
}

const loadAudiences = async (sql: Sql): Promise<readonly Audience[]> => {
  const { rows } = await sql.query<AudienceRow>(
    `select a.id, a.kind, a.workspace_id as "workspaceId", a.name, a.key, a.condition,
            a.timezone, a.scope, a.include_anonymous as "includeAnonymous",
            a.retract_on_delete as "retractOnDelete", a.entry_events as "entryEvents",
            a.sync_every_ms as "syncEveryMs", coalesce(d.ids, '{}') as "destinationIds"
       from audience a
       left join (select audience_id, array_agg(destination_id order by destination_id) as ids
                    from audience_destination group by audience_id) d on d.audience_id = a.id
      order by a.id`,
  )
  return rows.map((row) => ({
    ...row,
    condition: JSON.parse(row.condition) as JsonObject,
    syncEveryMs: Number(row.syncEveryMs),
  }))
}

const loadAudienceKeys = async (sql: Sql): Promise<Set<string>> => {
  const { rows } = await sql.query<{ workspaceId: number; key: string }>(
    'select workspace_id as "workspaceId", key from audience_key',
  )
  return new Set(rows.map(({ workspaceId, key }) => `${workspaceId}:${key}`))
}
