// Every write of the configuration; each runs under `lockConfiguration`, checks already done.
import type { Audience, Destination, Source, Webhook, Workspace } from '../domain/configuration.ts'
import type { Sql } from '../postgres/sql.ts'

export type NewWorkspace = Omit<Workspace, 'id'>

export const insertWorkspace = async (tx: Sql, workspace: NewWorkspace): Promise<Workspace> => {
  const id = await idOf(
    tx,
    'insert into workspace (name, regional_access) values ($1, $2) returning id',
    [workspace.name, workspace.regionalAccess],
  )
  return { ...workspace, id }
}

export const updateWorkspace = async (tx: Sql, workspace: Workspace): Promise<void> => {
  await tx.query('update workspace set name = $2, regional_access = $3 where id = $1', [
    workspace.id,
    workspace.name,
    workspace.regionalAccess,
  ])
}

export const deleteWorkspace = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from workspace where id = $1', [id])
}

export type NewSource = Omit<Source, 'id'> & { readonly secretKeyHash: Buffer }

export const insertSource = async (tx: Sql, source: NewSource): Promise<number> =>
  idOf(
    tx,
    `insert into source (workspace_id, name, class, write_key, secret_key_hash, enabled)
     values ($1, $2, $3, $4, $5, $6) returning id`,
    [
      source.workspaceId,
      source.name,
      source.class,
      source.writeKey,
      source.secretKeyHash,
      source.enabled,
    ],
  )

export const updateSource = async (tx: Sql, id: number, source: NewSource): Promise<void> => {
  await tx.query(
    `update source set name = $2, class = $3, write_key = $4, secret_key_hash = $5, enabled = $6
      where id = $1`,
    [id, source.name, source.class, source.writeKey, source.secretKeyHash, source.enabled],
  )
}

export const deleteSource = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from source where id = $1', [id])
}

export type NewDestination = Omit<Destination, 'id'>

export const insertDestination = async (tx: Sql, destination: NewDestination): Promise<number> => {
  const id = await idOf(
    tx,
    `insert into destination (workspace_id, name, type, enabled, shared_secret, historical, historical_after_ms)
     values ($1, $2, $3, $4, $5, $6, $7) returning id`,
    [
      destination.workspaceId,
      destination.name,
      destination.type,
      destination.enabled,
      destination.sharedSecret,
      destination.historical,
      destination.historicalAfterMs,
    ],
  )
  await insertWebhooks(tx, id, destination.webhooks)
  await insertSources(tx, id, destination.sourceIds)
  return id
}

export const updateDestination = async (tx: Sql, destination: Destination): Promise<void> => {
  const { id } = destination
  await tx.query(
    `update destination set name = $2, type = $3, enabled = $4, shared_secret = $5, historical = $6,
            historical_after_ms = $7 where id = $1`,
    [
      id,
      destination.name,
      destination.type,
      destination.enabled,
      destination.sharedSecret,
      destination.historical,
      destination.historicalAfterMs,
    ],
  )
  await tx.query('delete from webhook where destination_id = $1', [id])
  await insertWebhooks(tx, id, destination.webhooks)
  await tx.query('delete from destination_source where destination_id = $1', [id])
  await insertSources(tx, id, destination.sourceIds)
}

export const deleteDestination = async (tx: Sql, id: number): Promise<void> => {
  await tx.query('delete from destination where id = $1', [id])
}

const insertWebhooks = async (tx: Sql, id: number, webhooks: readonly Webhook[]) => {
  await tx.query(
    `insert into webhook (destination_id, place, url, headers)
     select $1, w.place, w.url, w.headers
       from unnest($2::text[], $3::json[]) with ordinality as w(url, headers, place)`,
    [id, webhooks.map(({ url }) => url), webhooks.map(({ headers }) => JSON.stringify(headers))],
  )
}

const insertSources = async (tx: Sql, id: number, sourceIds: ReadonlySet<number>) => {
  await tx.query(
    'insert into destination_source (destination_id, source_id) select $1, unnest($2::int[])',
    [id, [...sourceIds]],
  )
}

export type NewAudience = Omit<Audience, 'id'>

export const insertAudience = async (tx: Sql, audience: NewAudience): Promise<number> => {
  await tx.query('insert into audience_key (workspace_id, key) values ($1, $2)', [
    audience.workspaceId,
    audience.key,
  ])
  const id = await idOf(
    tx,
    `insert into audience (workspace_id, name, key, condition, sync_every_ms)
     values ($1, $2, $3, $4, $5) returning id`,
    [
      audience.workspaceId,
      audience.name,
      audience.key,
      JSON.stringify(audience.condition),
      audience.syncEveryMs,
    ],
  )
  await insertDestinations(tx, id, audience.destinationIds)
  return id
}

/** The key stays: it is what destinations know the audience by. */
export const updateAudience = async (tx: Sql, audience: Audience): Promise<void> => {
  const { id } = audience
  await tx.query(
    'update audience set name = $2, condition = $3, sync_every_ms = $4 where id = $1',
    [id, audience.name, JSON.stringify(audience.condition), audience.syncEveryMs],
  )
  await tx.query('delete from audience_destination where audience_id = $1', [id])
  await insertDestinations(tx, id, audience.destinationIds)
}

export const deleteAudience = async (tx: Sql, id: number): Promise<void> => {
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
