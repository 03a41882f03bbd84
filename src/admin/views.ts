// How the admin API shows what is configured: never a secret, header values to admins only.
import Type, { type TProperties } from 'typebox'
import { maskHeaders } from '../control/destination.ts'
import { formatDuration } from '../control/duration.ts'
import { AnyObject, StringMap } from '../control/schema.ts'
import type { SavedSource } from '../control/source.ts'
import type { Audience, Destination, Workspace } from '../domain/configuration.ts'
import type { Actor } from './route.ts'

/** A schema with a title becomes a component of the OpenAPI document. */
export const named = <P extends TProperties>(title: string, properties: P) =>
  Type.Object(properties, { title, additionalProperties: false })

export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const id = Type.Integer({ minimum: 1 })
export const idParams = Type.Object({ id: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }) })
export const dateTime = Type.String({ format: 'date-time' })

export const WorkspaceView = named('Workspace', {
  id,
  name: Type.String(),
  regionalAccess: Type.Boolean(),
})

export const workspaceView = ({ id, name, regionalAccess }: Workspace) => ({
  id,
  name,
  regionalAccess,
})

const sourceProperties = {
  id,
  workspaceId: id,
  name: Type.String(),
  class: Type.Union([Type.Literal('web'), Type.Literal('mobile'), Type.Literal('server')]),
  writeKey: Type.String(),
  enabled: Type.Boolean(),
}

export const SourceView = named('Source', sourceProperties)

export const SavedSourceView = named('SavedSource', {
  ...sourceProperties,
  secretKey: Type.Optional(
    Type.String({ description: 'Only when it was made or set just now: it is not shown again.' }),
  ),
})

export const sourceView = (source: SavedSource) => ({
  id: source.id,
  workspaceId: source.workspaceId,
  name: source.name,
  class: source.class,
  writeKey: source.writeKey,
  enabled: source.enabled,
  ...(source.secretKey === undefined ? {} : { secretKey: source.secretKey }),
})

export const DestinationView = named('Destination', {
  id,
  workspaceId: id,
  name: Type.String(),
  type: Type.Literal('webhook'),
  enabled: Type.Boolean(),
  sourceIds: Type.Array(id),
  signed: Type.Boolean({ description: 'Whether a shared secret is set.' }),
  historical: Type.Boolean(),
  historicalAfter: Type.String(),
  webhooks: Type.Array(named('Webhook', { url: Type.String(), headers: StringMap })),
})

export const destinationView = (destination: Destination, actor: Actor) => ({
  id: destination.id,
  workspaceId: destination.workspaceId,
  name: destination.name,
  type: destination.type,
  enabled: destination.enabled,
  sourceIds: [...destination.sourceIds],
  signed: destination.sharedSecret !== null,
  historical: destination.historical,
  historicalAfter: formatDuration(destination.historicalAfterMs),
  webhooks: actor.role === 'admin' ? destination.webhooks : destination.webhooks.map(maskHeaders),
})

export const AudienceView = named('Audience', {
  id,
  workspaceId: id,
  name: Type.String(),
  key: Type.String({ description: 'The property destinations get; fixed at creation.' }),
  where: AnyObject,
  destinationIds: Type.Array(id),
  syncEvery: Type.String(),
  state: Type.Union([Type.Literal('backfilling'), Type.Literal('live')]),
  members: Type.Integer({ minimum: 0 }),
  anonymousMembers: Type.Integer({
    minimum: 0,
    description: 'Members without a user id yet: counted, sent once they have one.',
  }),
})

export type Standing = {
  readonly state: 'backfilling' | 'live'
  readonly members: number
  readonly anonymousMembers: number
}

export const audienceView = (audience: Audience, standing: Standing) => ({
  id: audience.id,
  workspaceId: audience.workspaceId,
  name: audience.name,
  key: audience.key,
  where: audience.condition,
  destinationIds: audience.destinationIds,
  syncEvery: formatDuration(audience.syncEveryMs),
  ...standing,
})
