// The forms people write configuration in: requests of the admin API, and the file `millrace apply` takes.
import Type, { type Static, type TObject, type TProperties } from 'typebox'
import { AnyObject, StringMap } from './schema.ts'

const closed = <P extends TProperties>(properties: P, description?: string): TObject<P> =>
  Type.Object(properties, { additionalProperties: false, ...(description ? { description } : {}) })

const sourceClass = Type.Union([
  Type.Literal('web'),
  Type.Literal('mobile'),
  Type.Literal('server'),
])
const id = Type.Integer({ minimum: 1, maximum: 2_147_483_647 })
const workspaceId = Type.Optional(
  Type.Integer({
    ...{ minimum: 1, maximum: 2_147_483_647 },
    description: 'May be left out while there is one workspace only.',
  }),
)
const name = Type.String({ description: '1 to 200 characters, its own among its kind.' })
const flag = Type.Boolean()

export const WebhookInput = closed({
  url: Type.String({ description: 'The full URL, with http or https.' }),
  headers: Type.Optional(StringMap),
})

const webhooks = Type.Array(WebhookInput, { description: 'One to five.' })
const sharedSecret = Type.Union([Type.String(), Type.Null()], {
  description: 'Signs every request; null sends them unsigned. Never shown again.',
})
const historicalAfter = Type.String({
  description: 'How much older than its receipt makes a call historical: "24h".',
})
const syncEvery = Type.String({ description: 'From "1m" to "3650d"; "2h30m" when absent.' })

export const WorkspaceCreate = closed({ name, regionalAccess: Type.Optional(flag) })
export const WorkspacePatch = closed({
  name: Type.Optional(name),
  regionalAccess: Type.Optional(flag),
})

const keys = {
  writeKey: Type.Optional(Type.String({ description: 'Generated when absent.' })),
  secretKey: Type.Optional(
    Type.String({ description: 'Generated when absent; kept as a hash, shown once.' }),
  ),
}

export const SourceCreate = closed({
  workspaceId,
  name,
  class: sourceClass,
  ...keys,
  enabled: Type.Optional(flag),
})
export const SourcePatch = closed({
  name: Type.Optional(name),
  class: Type.Optional(sourceClass),
  ...keys,
  enabled: Type.Optional(flag),
})

const destinationSwitches = {
  enabled: Type.Optional(flag),
  sharedSecret: Type.Optional(sharedSecret),
  historical: Type.Optional(flag),
  historicalAfter: Type.Optional(historicalAfter),
}

export const DestinationCreate = closed({
  workspaceId,
  name,
  type: Type.Optional(Type.Literal('webhook')),
  sourceIds: Type.Optional(Type.Array(id)),
  webhooks: Type.Optional(webhooks),
  ...destinationSwitches,
})
export const DestinationPatch = closed({
  name: Type.Optional(name),
  sourceIds: Type.Optional(Type.Array(id)),
  webhooks: Type.Optional(webhooks),
  ...destinationSwitches,
})

export const AudienceCreate = closed({
  workspaceId,
  name,
  where: AnyObject,
  destinationIds: Type.Optional(Type.Array(id)),
  syncEvery: Type.Optional(syncEvery),
})
export const AudiencePatch = closed({
  name: Type.Optional(name),
  where: Type.Optional(AnyObject),
  destinationIds: Type.Optional(Type.Array(id)),
  syncEvery: Type.Optional(syncEvery),
})

const FileSource = closed({
  name,
  class: Type.Optional(sourceClass),
  ...keys,
  enabled: Type.Optional(flag),
})

const FileDestination = closed({
  name,
  type: Type.Optional(Type.Literal('webhook')),
  sources: Type.Optional(Type.Array(Type.String())),
  webhooks: Type.Optional(webhooks),
  ...destinationSwitches,
})

const FileAudience = closed({
  name,
  where: Type.Optional(AnyObject),
  destinations: Type.Optional(Type.Array(Type.String())),
  syncEvery: Type.Optional(syncEvery),
})

const FileWorkspace = closed({
  name,
  regionalAccess: Type.Optional(flag),
  sources: Type.Optional(Type.Array(FileSource)),
  destinations: Type.Optional(Type.Array(FileDestination)),
  audiences: Type.Optional(Type.Array(FileAudience)),
  traits: Type.Optional(Type.Array(AnyObject)),
})

export const ConfigurationFile = closed({ workspaces: Type.Array(FileWorkspace) })

export type FileSource = Static<typeof FileSource>
export type FileDestination = Static<typeof FileDestination>
export type FileAudience = Static<typeof FileAudience>
export type FileWorkspace = Static<typeof FileWorkspace>
export type ConfigurationFile = Static<typeof ConfigurationFile>
