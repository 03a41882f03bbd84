// A call as folding needs it: who, when, which leaves it feeds and which traits it writes.

import type { Plan, PlannedFeed } from '../audience/plan.ts'
import { accountOf } from '../domain/account.ts'
import { readCall as readText, valueAt } from '../domain/call-text.ts'
import { admits } from '../domain/condition/evaluate.ts'
import type { Observation } from '../domain/condition/summary/kind.ts'
import { effectiveTime } from '../domain/condition/window.ts'
import { type Identity, type IdentityKind, takenAs, type Who, whoOf } from '../domain/identity.ts'
import type { Json, JsonObject, Message } from '../domain/message.ts'
import type { Sighted } from './meter.ts'

export type Call = Observation & {
  readonly who: Who
  readonly workspaceId: number
  readonly feeds: readonly PlannedFeed[]
  readonly traits: JsonObject | null
  /** The account it ties its user to. */
  readonly groupId: string | null
  /** Ids it may be the first to show in their month. */
  readonly sighted: readonly Sighted[]
}

type Body = { readonly properties?: JsonObject; readonly traits?: JsonObject }

/** What a track call feeds, and its properties where anybody looks at them. */
export type Fed = {
  readonly feeds: readonly PlannedFeed[]
  readonly properties: Json | undefined
}

const nothing: Fed = { feeds: [], properties: undefined }

type Known = {
  readonly sighted: readonly Sighted[]
  /** What the previous id of an alias was taken for when it was folded before. */
  readonly previous?: IdentityKind | undefined
}

/** Parses of the body what is looked at, and only when a leaf filters this event, or when it may write traits. */
export const readCall = (message: Message, plan: Plan, { sighted, previous }: Known): Call => {
  if (message.filtered !== null) return unfolded(message, sighted)
  const { feeds, properties } = fedBy(message, plan)
  const traits = message.type === 'identify' ? (bodysObject(message, 'traits') ?? null) : null
  return {
    who: previous === undefined ? whoOf(message) : takenAs(whoOf(message), previous),
    workspaceId: message.workspaceId,
    te: effectiveTime(message.timestamp, message.receivedAt),
    r: message.receivedAt,
    id: message.messageId,
    feeds,
    properties,
    traits: traits !== null && Object.keys(traits).length > 0 ? traits : null,
    groupId: accountOf(message),
    sighted,
  }
}

/** A call that was filtered at its source stands in the log for usage alone. */
const unfolded = (message: Message, sighted: readonly Sighted[]): Call => ({
  who: { type: 'nobody' },
  workspaceId: message.workspaceId,
  te: message.receivedAt,
  r: message.receivedAt,
  id: message.messageId,
  ...nothing,
  traits: null,
  groupId: null,
  sighted,
})

export const fedBy = (message: Message, plan: Plan): Fed => {
  if (message.type !== 'track' || message.event === null || message.filtered !== null)
    return nothing
  const feeds = plan.workspaces.get(message.workspaceId)?.feeds.get(message.event)
  if (feeds === undefined) return nothing
  if (feeds.every(({ where, reads }) => where === null && !reads))
    return { feeds, properties: undefined }
  const properties = bodysObject(message, 'properties')
  return {
    feeds: feeds.filter(({ where }) => where === null || admits(where, properties)),
    properties,
  }
}

/** The rest of the body is not parsed: most of it is nothing to folding. */
const bodysObject = ({ body }: Message, part: 'properties' | 'traits'): JsonObject | undefined => {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const call = readText(bytes)
  if (call === null) return (JSON.parse(bytes.toString()) as Body)[part]
  const span = call[part]
  return span === null ? undefined : (valueAt(call, span) as JsonObject)
}

/** Every identity that resolving the call may ask for. */
export const identitiesOf = (who: Who): readonly Identity[] => {
  switch (who.type) {
    case 'nobody':
      return []
    case 'one':
      return [who.subject]
    case 'identified':
      return [who.subject, who.anonymous]
    case 'aliased':
      return [who.subject, who.previous, who.previousAnonymous]
  }
}
