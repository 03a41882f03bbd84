// What operators configure, as the stages see it: one immutable snapshot, replaced whole on change.
import type { Filter } from './filter.ts'
import type { JsonObject } from './message.ts'
import type { TrackingPlan } from './tracking-plan.ts'

/** Where an installation stands; every workspace may use the first. */
export const regions = ['oregon', 'dublin'] as const

export type Region = (typeof regions)[number]

export type SourceClass = 'web' | 'mobile' | 'server'

export type Workspace = {
  readonly id: number
  readonly name: string
  readonly regionalAccess: boolean
  /** On a plan under which filtered calls of server sources still count towards usage. */
  readonly grandfathered: boolean
}

/** What is kept of an address: all of it, its network (/24 or /48), or nothing. */
export const ipPolicies = ['keep', 'truncate', 'drop'] as const

export type IpPolicy = (typeof ipPolicies)[number]

/** What an operator may set for one source; each has a default. */
export type SourceSettings = {
  readonly ipPolicy: IpPolicy
  /** Whether the `context.ip` that a page claims stands over the address it comes from. */
  readonly trustClientIp: boolean
  /** Whether a client's clock is left alone, whatever it says it was sent at. */
  readonly ignoreSentAt: boolean
  /** Origins whose pages may send; empty: any. */
  readonly allowedOrigins: readonly string[]
  /** Over the installation's own; `null`: as the installation. */
  readonly callBytesMax: number | null
  readonly bodyBytesMax: number | null
  readonly batchCallsMax: number | null
  /** Over all processes; `null`: no quota. */
  readonly callsPerSecondMax: number | null
  readonly trackingPlan: TrackingPlan | null
}

export const defaultSourceSettings: SourceSettings = {
  ipPolicy: 'keep',
  trustClientIp: false,
  ignoreSentAt: false,
  allowedOrigins: [],
  callBytesMax: null,
  bodyBytesMax: null,
  batchCallsMax: null,
  callsPerSecondMax: null,
  trackingPlan: null,
}

export type Source = {
  readonly id: number
  readonly workspaceId: number
  readonly name: string
  readonly class: SourceClass
  readonly writeKey: string
  /** SHA-256 in hex of the key that may delete users; the key itself is nowhere. */
  readonly secretKeyHash: string
  readonly enabled: boolean
  readonly settings: SourceSettings
}

export type ClientCertificate = {
  /** PEM: the certificate, and after it those it was issued by. */
  readonly certificate: string
  readonly key: string
}

export type Webhook = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Requests at a time, over what every URL gets; `null`: as many as any. */
  readonly concurrencyMax: number | null
  readonly requestsPerSecondMax: number | null
  /** PEM certificates trusted beside the system's. */
  readonly ca: string | null
  readonly clientCertificate: ClientCertificate | null
}

/** What a URL has that nothing was set for. */
export const defaultWebhook: Omit<Webhook, 'url'> = {
  headers: {},
  concurrencyMax: null,
  requestsPerSecondMax: null,
  ca: null,
  clientCertificate: null,
}

/** One after the other for each user, or as fast as it goes. */
export const sendOrders = ['user', 'none'] as const

/** The fields of the specification's tables, or these and what they leave out. */
export const payloads = ['spec', 'full'] as const

/** Headers sent beside those of the specification. */
export type Signatures = {
  /** webhook-id, webhook-timestamp and webhook-signature. */
  readonly standardWebhooks: boolean
  /** X-Signature-256. */
  readonly sha256: boolean
  /** X-Signature-Next, while the next secret waits for its time. */
  readonly next: boolean
}

export type NextSecret = {
  readonly secret: string
  /** Epoch ms: every try from then on is signed with it. */
  readonly activateAt: number
}

/** How messages go to one destination. */
export type DestinationSettings = {
  readonly order: (typeof sendOrders)[number]
  readonly payload: (typeof payloads)[number]
  /** Whether what died of a certificate goes out again by itself when the URL has a good one. */
  readonly replayOnHeal: boolean
  readonly signatures: Signatures
}

export const defaultDestinationSettings: DestinationSettings = {
  order: 'user',
  payload: 'spec',
  replayOnHeal: false,
  signatures: { standardWebhooks: false, sha256: false, next: false },
}

export type Destination = DestinationSettings & {
  readonly id: number
  readonly workspaceId: number
  readonly name: string
  readonly type: 'webhook'
  readonly enabled: boolean
  readonly sourceIds: ReadonlySet<number>
  readonly sharedSecret: string | null
  /** What replaces the shared secret, and when. */
  readonly nextSharedSecret: NextSecret | null
  /** Whether it takes historical calls: receivedAt − timestamp over `historicalAfterMs`. */
  readonly historical: boolean
  readonly historicalAfterMs: number
  /** One to five. */
  readonly webhooks: readonly Webhook[]
  /** Applied in the order of `filterKinds`, whatever the order here. */
  readonly filters: readonly Filter[]
}

/** An audience, or a computed trait: both are worked out of a user's calls and synced alike. */
export type Audience = {
  readonly id: number
  readonly kind: 'audience' | 'trait'
  readonly workspaceId: number
  readonly name: string
  /** The property sent to destinations: snake_case of the name, fixed at creation. */
  readonly key: string
  /** As saved: a condition, or a computed trait's measure. What cannot be evaluated was refused then. */
  readonly condition: JsonObject
  /** IANA: of calendar days, and of dates without a zone. */
  readonly timezone: string
  /** Whether users without a user id are in it, too; they are told of once they have one. */
  /** Whom the condition is about: each user, or the users of an account together. */
  readonly scope: 'user' | 'account'
  readonly includeAnonymous: boolean
  /** Whether destinations are told of every member that they are none any more when it is deleted. */
  readonly retractOnDelete: boolean
  /** Whether a track message says beside each change that the user entered or exited. */
  readonly entryEvents: boolean
  readonly destinationIds: readonly number[]
  readonly syncEveryMs: number
}

export type Configuration = {
  /** Ascends with every change in any process. */
  readonly version: bigint
  readonly workspaces: ReadonlyMap<number, Workspace>
  readonly sources: ReadonlyMap<number, Source>
  readonly sourceByWriteKey: ReadonlyMap<string, Source>
  readonly sourceBySecretKeyHash: ReadonlyMap<string, Source>
  readonly destinations: ReadonlyMap<number, Destination>
  readonly destinationsBySource: ReadonlyMap<number, readonly Destination[]>
  readonly audiences: ReadonlyMap<number, Audience>
}

/** The current snapshot, and a way to hear of the next. */
export type Live = {
  now(): Configuration
  /** Calls back after every replacement, in every process within 5 s; returns the unsubscriber. */
  onChange(changed: (configuration: Configuration) => void): () => void
}

/** The default region is open to all; another one needs the workspace's access. */
export const isCollectedIn = (
  region: Region,
  source: Pick<Source, 'workspaceId'>,
  { workspaces }: Pick<Configuration, 'workspaces'>,
): boolean => region === regions[0] || (workspaces.get(source.workspaceId)?.regionalAccess ?? false)
