// The forms people write configuration in: requests of the admin API, and the file `millrace apply` takes.
import Type, { type Static, type TSchema } from 'typebox'
import { payloads, sendOrders } from '../domain/configuration.ts'
import { filtersInput } from './filter.ts'
import { AnyObject, closed, oneOf, StringMap } from './schema.ts'
import { settingInputs } from './source-settings.ts'

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

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

const pemCharactersMax = 65_536
const pem = (description: string) => Type.String({ maxLength: pemCharactersMax, description })

export const WebhookInput = closed({
  url: Type.String({ description: 'The full URL, with http or https.' }),
  headers: Type.Optional({
    ...StringMap,
    description: 'The value "(hidden)", as it is shown, keeps what the URL has.',
  }),
  concurrencyMax: orNull(
    Type.Integer({ minimum: 1, maximum: 1_000, description: 'Requests at a time.' }),
  ),
  requestsPerSecondMax: orNull(Type.Number({ minimum: 0.01, maximum: 100_000 })),
  ca: orNull(pem("PEM certificates trusted beside the system's.")),
  clientCertificate: orNull(
    closed({
      certificate: pem("PEM, the issuers' behind it."),
      key: pem('PEM, without a passphrase; "(hidden)" keeps the one there is.'),
    }),
  ),
})

const webhooks = Type.Array(WebhookInput, { description: 'One to five.' })
const sharedSecret = Type.Union([Type.String(), Type.Null()], {
  description:
    'Signs every request; null sends them unsigned, "generate" makes one. Never shown again.',
})
const nextSharedSecret = Type.Union(
  [
    closed({
      secret: Type.String(),
      activateAt: Type.String({ description: 'ISO 8601: tries from then on are signed with it.' }),
    }),
    Type.Null(),
  ],
  { description: 'Replaces the shared secret at its time; null keeps the one there is.' },
)
/** Each may be left out, and is then as it was. */
const signatures = closed({
  standardWebhooks: Type.Optional(flag),
  sha256: Type.Optional(flag),
  next: Type.Optional(flag),
})
const historicalAfter = Type.String({
  description: 'How much older than its receipt makes a call historical: "24h".',
})
const syncEvery = Type.String({ description: 'From "1m" to "3650d"; "2h30m" when absent.' })

const workspaceSwitches = {
  regionalAccess: Type.Optional(flag),
  grandfathered: Type.Optional(
    Type.Boolean({
      description: 'Whether filtered calls of server sources still count towards usage.',
    }),
  ),
}

export const WorkspaceCreate = closed({ name, ...workspaceSwitches })
export const WorkspacePatch = closed({ name: Type.Optional(name), ...workspaceSwitches })

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
  ...settingInputs,
})
export const SourcePatch = closed({
  name: Type.Optional(name),
  class: Type.Optional(sourceClass),
  ...keys,
  enabled: Type.Optional(flag),
  ...settingInputs,
})

const destinationSwitches = {
  enabled: Type.Optional(flag),
  order: Type.Optional(oneOf(sendOrders)),
  payload: Type.Optional(oneOf(payloads)),
  replayOnHeal: Type.Optional(flag),
  sharedSecret: Type.Optional(sharedSecret),
  nextSharedSecret: Type.Optional(nextSharedSecret),
  signatures: Type.Optional(signatures),
  historical: Type.Optional(flag),
  historicalAfter: Type.Optional(historicalAfter),
  filters: Type.Optional(filtersInput),
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

export const SecretRotation = closed({
  secret: Type.Optional(Type.String({ description: 'Generated when absent, and shown once.' })),
  activateAt: Type.Optional(Type.String({ description: 'ISO 8601.' })),
  after: Type.Optional(
    Type.String({
      description: 'How long from now, in place of activateAt: "24h" when both are absent.',
    }),
  ),
})

const where = Type.Union([AnyObject, Type.String()], {
  description: 'The condition that members meet, as JSON or as text.',
})
const measure = Type.Union([AnyObject, Type.String()], {
  description: 'The events, and what is made of them, as JSON or as text.',
})
/** What audiences and computed traits have in common. */
const syncing = {
  syncEvery: Type.Optional(syncEvery),
  timezone: Type.Optional(
    Type.String({
      description: 'IANA, of calendar days and dates without a zone; "UTC" when absent.',
    }),
  ),
  retractOnDelete: Type.Optional(
    Type.Boolean({
      description: 'Whether its deletion is told to the destinations, of every user.',
    }),
  ),
}
const audienceSwitches = {
  ...syncing,
  includeAnonymous: Type.Optional(
    Type.Boolean({ description: 'Whether users without a user id can be members.' }),
  ),
  entryEvents: Type.Optional(
    Type.Boolean({
      description: 'Whether "Audience Entered" and "Audience Exited" are sent beside each change.',
    }),
  ),
}
const destinationIds = Type.Optional(Type.Array(id))

/** Fixed at creation; where it is absent, the condition says it. */
const scope = Type.Optional(oneOf(['user', 'account']))

export const AudienceCreate = closed({
  workspaceId,
  name,
  scope,
  where,
  destinationIds,
  ...audienceSwitches,
})
export const AudiencePatch = closed({
  name: Type.Optional(name),
  where: Type.Optional(where),
  destinationIds,
  ...audienceSwitches,
})
export const TraitCreate = closed({ workspaceId, name, measure, destinationIds, ...syncing })
export const TraitPatch = closed({
  name: Type.Optional(name),
  measure: Type.Optional(measure),
  destinationIds,
  ...syncing,
})

const FileSource = closed({
  name,
  class: Type.Optional(sourceClass),
  ...keys,
  enabled: Type.Optional(flag),
  ...settingInputs,
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
  scope,
  where: Type.Optional(where),
  destinations: Type.Optional(Type.Array(Type.String())),
  ...audienceSwitches,
})

const FileTrait = closed({
  name,
  measure: Type.Optional(measure),
  destinations: Type.Optional(Type.Array(Type.String())),
  ...syncing,
})

const FileWorkspace = closed({
  name,
  ...workspaceSwitches,
  sources: Type.Optional(Type.Array(FileSource)),
  destinations: Type.Optional(Type.Array(FileDestination)),
  audiences: Type.Optional(Type.Array(FileAudience)),
  traits: Type.Optional(Type.Array(FileTrait)),
})

export const ConfigurationFile = closed({ workspaces: Type.Array(FileWorkspace) })

export type FileSource = Static<typeof FileSource>
export type FileDestination = Static<typeof FileDestination>
export type FileAudience = Static<typeof FileAudience>
export type FileTrait = Static<typeof FileTrait>
export type FileWorkspace = Static<typeof FileWorkspace>
export type ConfigurationFile = Static<typeof ConfigurationFile>
