// What operators configure, as the stages see it: one immutable snapshot, replaced whole on change.
import type { JsonObject } from './message.ts'

/** Where an installation stands; every workspace may use the first. */
export const regions = ['oregon', 'dublin'] as const

export type Region = (typeof regions)[number]

export type SourceClass = 'web' | 'mobile' | 'server'

export type Workspace = {
  readonly id: number
  readonly name: string
  readonly regionalAccess: boolean
}

export type Source = {
  readonly id: number
  readonly workspaceId: number
  readonly name: string
  readonly class: SourceClass
  readonly writeKey: string
  readonly enabled: boolean
}

export type Webhook = { readonly url: string; readonly headers: Readonly<Record<string, string>> }

export type Destination = {
  readonly id: number
  readonly workspaceId: number
  readonly name: string
  readonly type: 'webhook'
  readonly enabled: boolean
  readonly sourceIds: ReadonlySet<number>
  readonly sharedSecret: string | null
  /** Whether it takes historical calls: receivedAt − timestamp over `historicalAfterMs`. */
  readonly historical: boolean
  readonly historicalAfterMs: number
  /** One to five. */
  readonly webhooks: readonly Webhook[]
}

export type Audience = {
  readonly id: number
  readonly workspaceId: number
  readonly name: string
  /** The property sent to destinations: snake_case of the name, fixed at creation. */
  readonly key: string
  /** As saved; parsed by domain/condition.ts, which refused at save time what cannot be evaluated. */
  readonly condition: JsonObject
  readonly destinationIds: readonly number[]
  readonly syncEveryMs: number
}

export type Configuration = {
  /** Ascends with every change in any process. */
  readonly version: bigint
  readonly workspaces: ReadonlyMap<number, Workspace>
  readonly sources: ReadonlyMap<number, Source>
  readonly sourceByWriteKey: ReadonlyMap<string, Source>
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
