// Every write of the configuration; each runs under `lockConfiguration`, checks already done.
import type { Audience, Source, Workspace } from '../domain/configuration.ts'
import type { Sql } from '../postgres/sql.ts'

export type NewWorkspace = Omit<Workspace, 'id'>

export const insertWorkspace = async (tx: Sql, workspace: NewWorkspace): Promise<Workspace> => {
  const id = await idOf(
    tx,
    'insert into workspace (name, regional_access, grandfathered) values ($1, $2, $3) returning id',
    [workspace.name, workspace.regionalAccess, workspace.grandfathered],
  )
  return { ...workspace, id }
}

export const updateWorkspace = async (tx: Sql, workspace: Workspace): Promise<void> => {
  await tx.query(
    'update workspace set name = $2, regional_access = $3, grandfathered = $4 where id = $1',
    [workspace.id, workspace.name, workspace.regionalAccess, workspace.grandfathered],
  )
}

export const deleteWorkspace = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from workspace where id = $1', [id])
}

export type NewSource = Omit<Source, 'id'>

export const insertSource = async (tx: Sql, source: NewSource): Promise<number> =>
  idOf(
    tx,
    `insert into source (workspace_id, name, class, write_key, secret_key_hash, enabled, settings)
     values ($1, $2, $3, $4, decode($5, 'hex'), $6, $7) returning id`,
    [
      source.workspaceId,
      source.name,
      source.class,
      source.writeKey,
      source.secretKeyHash,
      source.enabled,
      JSON.stringify(source.settings),
    ],
  )

export const updateSource = async (tx: Sql, id: number, source: NewSource): Promise<void> => {
  await tx.query(
    `update source set name = $2, class = $3, write_key = $4,
            secret_key_hash = decode($5, 'hex'), enabled = $6, settings = $7
      where id = $1`,
    [
      id,
      source.name,
      source.class,
      source.writeKey,
      source.secretKeyHash,
      source.enabled,
      JSON.stringify(source.settings),
    ],
  )
}

export const deleteSource = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from source where id = $1', [id])
}

export type NewAudience = Omit<Audience, 'id'>

export const insertAudience = async (tx: Sql, audience: NewAudience): Promise<number> => {
  await tx.query('insert into audience_key (workspace_id, key) values ($1, $2)', [
    audience.workspaceId,
    audience.key,
  ])
  const id = await idOf(
    tx,
    `insert into audience
       (workspace_id, name, key, condition, sync_every_ms, kind, timezone, include_anonymous,
        retract_on_delete, entry_events, scope)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning id`,
    [
      audience.workspaceId,
      audience.name,
      audience.key,
      JSON.stringify(audience.condition),
      audience.syncEveryMs,
      audience.kind,
      audience.timezone,
      audience.includeAnonymous,
      audience.retractOnDelete,
      audience.entryEvents,
      audience.scope,
    ],
  )
  await insertDestinations(tx, id, audience.destinationIds)
  return id
}

/** The key stays: it is what destinations know the audience by. */
export const updateAudience = async (tx: Sql, audience: Audience): Promise<void> => {
  const { id } = audience
  await tx.query(
    `update audience set name = $2, condition = $3, sync_every_ms = $4, timezone = $5,
            include_anonymous = $6, retract_on_delete = $7, entry_events = $8
      where id = $1`,
    [
      id,
      audience.name,
      JSON.stringify(audience.condition),
      audience.syncEveryMs,
      audience.timezone,
      audience.includeAnonymous,
      audience.retractOnDelete,
      audience.entryEvents,
    ],
  )
  await tx.query('delete from audience_destination where audience_id = $1', [id])
  await insertDestinations(tx, id, audience.destinationIds)
}

/** What its destinations were told is taken back where that was asked for. */
export const deleteAudience = async (tx: Sql, audience: Audience): Promise<void> => {
  const { id, workspaceId, kind, key, destinationIds } = audience
  if (audience.retractOnDelete && destinationIds.length > 0)
    await tx.query(
      `insert into retraction (audience_id, workspace_id, kind, key, destination_ids)
       values ($1, $2, $3, $4, $5)`,
      [id, workspaceId, kind, key, destinationIds],
    )
  await tx.query('delete from audience where id = $1', [id])
}

const insertDestinations = async (tx: Sql, id: number, destinationIds: readonly number[]) => {
  await tx.query(
    'insert into audience_destination (audience_id, destination_id) select $1, unnest($2::int[])',
    [id, destinationIds],
  )
}

const idOf = async (tx: Sql, text: string, values: readonly unknown[]): Promise<number> => {
  const { rows } = await tx.query<{ id: number }>(text, values)
  return (rows[0] as { id: number }).id
}
