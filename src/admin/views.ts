// How the admin API shows what is configured: never a secret, and of headers their names.

import Type, { type TProperties } from 'typebox'
import { formatDuration } from '../control/duration.ts'
import { FilterInput } from '../control/filter.ts'
import { AnyObject, oneOf, StringMap } from '../control/schema.ts'
import type { SavedSource } from '../control/source.ts'
import { settingInputs } from '../control/source-settings.ts'
import { maskWebhook } from '../control/webhook-options.ts'
import { printCondition, printMeasure } from '../domain/condition/text/print.ts'
import {
  type Audience,
  type Destination,
  payloads,
  sendOrders,
  type Workspace,
} from '../domain/configuration.ts'

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
  grandfathered: Type.Boolean(),
})

export const workspaceView = ({ id, name, regionalAccess, grandfathered }: Workspace) => ({
  id,
  name,
  regionalAccess,
  grandfathered,
})

const sourceProperties = {
  id,
  workspaceId: id,
  name: Type.String(),
  class: Type.Union([Type.Literal('web'), Type.Literal('mobile'), Type.Literal('server')]),
  writeKey: Type.String(),
  enabled: Type.Boolean(),
  ...Type.Required(Type.Object(settingInputs)).properties,
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
  ...source.settings,
  ...(source.secretKey === undefined ? {} : { secretKey: source.secretKey }),
})

const WebhookView = named('Webhook', {
  url: Type.String(),
  headers: { ...StringMap, description: 'Names; every value reads "(hidden)".' },
  concurrencyMax: nullable(Type.Integer()),
  requestsPerSecondMax: nullable(Type.Number()),
  ca: nullable(Type.String()),
  clientCertificate: nullable(
    Type.Object({
      certificate: Type.String(),
      key: Type.String({ description: 'Reads "(hidden)".' }),
    }),
  ),
})

const destinationProperties = {
  id,
  workspaceId: id,
  name: Type.String(),
  type: Type.Literal('webhook'),
  enabled: Type.Boolean(),
  sourceIds: Type.Array(id),
  order: oneOf(sendOrders),
  payload: oneOf(payloads),
  replayOnHeal: Type.Boolean(),
  signed: Type.Boolean({ description: 'Whether a shared secret is set.' }),
  signatures: Type.Object({
    standardWebhooks: Type.Boolean(),
    sha256: Type.Boolean(),
    next: Type.Boolean(),
  }),
  nextSecretAt: {
    ...nullable(dateTime),
    description: 'From when on the secret signs that follows the shared one.',
  },
  historical: Type.Boolean(),
  historicalAfter: Type.String(),
  filters: Type.Array(FilterInput),
  webhooks: Type.Array(WebhookView),
}

export const DestinationView = named('Destination', destinationProperties)

export const SavedDestinationView = named('SavedDestination', {
  ...destinationProperties,
  sharedSecret: Type.Optional(
    Type.String({ description: 'Only when it was generated just now: it is not shown again.' }),
  ),
})

export const destinationView = (destination: Destination) => ({
  id: destination.id,
  workspaceId: destination.workspaceId,
  name: destination.name,
  type: destination.type,
  enabled: destination.enabled,
  sourceIds: [...destination.sourceIds],
  order: destination.order,
  payload: destination.payload,
  replayOnHeal: destination.replayOnHeal,
  signed: destination.sharedSecret !== null,
  signatures: destination.signatures,
  nextSecretAt: shownInstant(destination.nextSharedSecret?.activateAt),
  historical: destination.historical,
  historicalAfter: formatDuration(destination.historicalAfterMs),
  filters: destination.filters,
  webhooks: destination.webhooks.map(maskWebhook),
})

const shownInstant = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString()

const synced = {
  timezone: Type.String(),
  retractOnDelete: Type.Boolean(),
  destinationIds: Type.Array(id),
  syncEvery: Type.String(),
  state: Type.Union([Type.Literal('backfilling'), Type.Literal('live')]),
}

export const AudienceView = named('Audience', {
  id,
  workspaceId: id,
  name: Type.String(),
  key: Type.String({ description: 'The property destinations get; fixed at creation.' }),
  scope: oneOf(['user', 'account']),
  where: AnyObject,
  text: Type.String({ description: 'The condition as text.' }),
  includeAnonymous: Type.Boolean(),
  entryEvents: Type.Boolean(),
  ...synced,
  members: Type.Integer({ minimum: 0 }),
  anonymousMembers: Type.Integer({
    minimum: 0,
    description: 'Members without a user id yet: counted, sent once they have one.',
  }),
})

export const TraitView = named('Trait', {
  id,
  workspaceId: id,
  name: Type.String(),
  key: Type.String({ description: 'The property destinations get; fixed at creation.' }),
  measure: AnyObject,
  text: Type.String({ description: 'The measure as text.' }),
  ...synced,
  users: Type.Integer({ minimum: 0, description: 'Users who have a value.' }),
})

export type Standing = {
  readonly state: 'backfilling' | 'live'
  readonly members: number
  readonly anonymousMembers: number
}

const syncedView = (audience: Audience) => ({
  id: audience.id,
  workspaceId: audience.workspaceId,
  name: audience.name,
  key: audience.key,
  timezone: audience.timezone,
  retractOnDelete: audience.retractOnDelete,
  destinationIds: audience.destinationIds,
  syncEvery: formatDuration(audience.syncEveryMs),
})

export const audienceView = (audience: Audience, standing: Standing) => ({
  ...syncedView(audience),
  scope: audience.scope,
  where: audience.condition,
  text: printCondition(audience.condition),
  includeAnonymous: audience.includeAnonymous,
  entryEvents: audience.entryEvents,
  ...standing,
})

export const traitView = (trait: Audience, { state, members }: Standing) => ({
  ...syncedView(trait),
  measure: trait.condition,
  text: printMeasure(trait.condition),
  state,
  users: members,
})
