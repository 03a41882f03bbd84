// Judges one raw call and makes it a message: ids, times, context, and the body that is stored.
import type { Source } from './configuration.ts'
import { contextOf } from './context.ts'
import { clean } from './json.ts'
import {
  type CallType,
  digestOf,
  isObject,
  type Json,
  type JsonObject,
  type Message,
  sentTypes,
} from './message.ts'
import { narrow, propertyBytesMin } from './narrow.ts'
import type { Flag, Rejection, RejectionCode } from './rejection.ts'
import { isoOf, resolveTimes, type Times } from './timestamp.ts'
import type { Plan, PlanReason } from './tracking-plan.ts'

/** What a request says about each of its calls. */
export type Receipt = {
  readonly source: Source
  /** From the path; `null` when each call names its own, `unknown` when the path names none of ours. */
  readonly type: CallType | 'unknown' | null
  /** Whether the request proved to be the source's own and not a page's: then it may ask for deletion. */
  readonly mayDelete?: boolean
  /** Epoch ms, when the last byte of the request had arrived. */
  readonly receivedAt: number
  readonly sentAt: Json | undefined
  readonly retryCount: number
  /** Merged under each call's own, first level only. */
  readonly context: JsonObject
  readonly integrations: JsonObject
  readonly ip: string | null
  readonly userAgent: string | null
  readonly messageId: () => string
  readonly flag: (flag: Flag) => void
  /** The source's tracking plan, when it has one. */
  readonly plan?: Plan | undefined
  readonly limits: CallLimits
}

export type CallLimits = {
  /** The call's own stringified JSON, before anything is added to it. */
  readonly callBytesMax: number
  readonly depthMax: number
  /** Of the names in properties, traits and context, at any depth; those beyond it are dropped. */
  readonly propertiesMax: number
  readonly messageIdLengthMax: number
  /** User, anonymous, previous and group ids: longer ones could not be indexed. */
  readonly idLengthMax: number
}

type Ids = Pick<Message, 'userId' | 'anonymousId' | 'previousId' | 'groupId'>

export const normalise = (raw: Json, receipt: Receipt): Message | Rejection => {
  if (!isObject(raw)) return { rejected: 'not_an_object', messageId: null }
  const cleaned = clean(raw, { depthMax: receipt.limits.depthMax, flag: receipt.flag })
  if ('rejected' in cleaned) return reject(cleaned.rejected, raw)
  const call = cleaned.value as JsonObject
  const type = receipt.type ?? call['type']
  if (!isCollected(type) && !(type === 'delete' && receipt.mayDelete))
    return reject('unknown_type', call)
  const ids = readIds(call, type, receipt.limits)
  if (typeof ids === 'string') return reject(ids, call)
  const fault = judgeFields(call, type) ?? judgeMessageId(call['messageId'], receipt.limits)
  if (fault) return reject(fault, call)
  const messageId = (call['messageId'] as string | null | undefined) || receipt.messageId()
  const context = contextOf(call, receipt)
  const times = resolveTimes(
    {
      receivedAt: receipt.receivedAt,
      timestamp: call['timestamp'],
      originalTimestamp: call['originalTimestamp'],
      receivedBefore: isAbsent(call['receivedAt']) ? undefined : call['receivedAt'],
      sentAt: call['sentAt'],
      batchSentAt: receipt.sentAt,
      retryCount: receipt.retryCount,
      ignoreSentAt: context['ignoreSentAt'] === true || receipt.source.settings.ignoreSentAt,
    },
    receipt.flag,
  )
  const planned = obey(call, type, receipt)
  if (planned === 'call_too_large') return reject(planned, call)
  const { kept, filtered } = planned ?? { kept: call, filtered: null }
  const stored = { ...ids, type, messageId, context, times, receipt }
  const body = filtered === null ? storedBody(kept, stored) : emptyBody
  if (body === null || isTooLarge(call, body, receipt.limits.callBytesMax))
    return reject('call_too_large', call)
  const { workspaceId, id: sourceId } = receipt.source
  return {
    messageId,
    digest: digestOf({ workspaceId, sourceId, messageId }),
    type,
    workspaceId,
    sourceId,
    ...ids,
    event: type === 'track' ? (call['event'] as string) : null,
    timestamp: times.timestamp,
    originalTimestamp: times.originalTimestamp ?? receipt.receivedAt,
    sentAt: times.sentAt,
    receivedAt: receipt.receivedAt,
    body,
    filtered,
  }
}

/** Of a filtered call, which nobody reads. */
const emptyBody: Uint8Array = Buffer.from('{}')

type Planned = { readonly kept: JsonObject; readonly filtered: PlanReason | null }

/** `null` when no plan changes anything. Measured first: what is too large is not worth a plan's while. */
const obey = (
  call: JsonObject,
  type: CallType,
  { plan, limits }: Receipt,
): Planned | 'call_too_large' | null => {
  if (plan === undefined || type !== 'track') return null
  if (sizeOf(call) > limits.callBytesMax) return 'call_too_large'
  const { event, properties } = call
  const verdict = plan(event as string, isObject(properties) ? properties : {})
  if (verdict === null) return null
  return 'filtered' in verdict
    ? { kept: call, filtered: verdict.filtered }
    : { kept: { ...call, properties: verdict.properties }, filtered: null }
}

const reject = (rejected: RejectionCode, call: JsonObject): Rejection => {
  const messageId = call['messageId']
  const isShown = typeof messageId === 'string' && messageId.length <= 100
  return { rejected, messageId: isShown ? messageId : null }
}

const isAbsent = (value: Json | undefined): value is null | undefined | '' =>
  value === undefined || value === null || value === ''

/** What PHP makes of an empty map. */
const isEmptyArray = (value: Json | undefined) => Array.isArray(value) && value.length === 0

const collected: ReadonlySet<unknown> = new Set(sentTypes)

const isCollected = (type: unknown): type is CallType => collected.has(type)

const readIds = (call: JsonObject, type: CallType, limits: CallLimits): Ids | RejectionCode => {
  const userId = readId(call['userId'])
  const anonymousId = readId(call['anonymousId'])
  const previousId = readId(call['previousId'])
  const groupId = readId(call['groupId'])
  for (const id of [userId, anonymousId, previousId, groupId]) {
    if (id === undefined) return 'id_not_string'
    if (id !== null && id.length > limits.idLengthMax) return 'id_too_long'
  }
  if (userId === null && anonymousId === null) return 'no_user_anon_id'
  if (type === 'group' && groupId === null) return 'no_group_id'
  if (type === 'alias' && previousId === null) return 'no_previous_id'
  if (type === 'alias' && userId === null) return 'no_user_id'
  return { userId, anonymousId, previousId, groupId } as Ids
}

/** `null` is absent, `undefined` is not an id. Zero is an id. */
const readId = (value: Json | undefined): string | null | undefined => {
  if (isAbsent(value)) return null
  if (typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : undefined
}

const judgeFields = (call: JsonObject, type: CallType): RejectionCode | null => {
  if (type === 'track') {
    if (isAbsent(call['event'])) return 'event_not_defined'
    if (typeof call['event'] !== 'string') return 'event_not_string'
  }
  if (type === 'page' || type === 'screen') {
    if (!isTextOrAbsent(call['name'])) return 'name_not_string'
    if (!isTextOrAbsent(call['category'])) return 'category_not_string'
  }
  if (!isMapOrAbsent(call['properties'])) return 'properties_not_object'
  if (!isMapOrAbsent(call['traits'])) return 'traits_not_object'
  return isMapOrAbsent(call['context']) ? null : 'context_not_object'
}

const isTextOrAbsent = (value: Json | undefined) => typeof value === 'string' || isAbsent(value)

const isMapOrAbsent = (value: Json | undefined) =>
  value === undefined || value === null || isObject(value) || isEmptyArray(value)

const judgeMessageId = (messageId: Json | undefined, limits: CallLimits): RejectionCode | null => {
  if (isAbsent(messageId)) return null
  if (typeof messageId !== 'string') return 'message_id_not_string'
  return messageId.length > limits.messageIdLengthMax ? 'message_id_too_long' : null
}

type Stored = Ids & {
  readonly type: CallType
  readonly messageId: string
  readonly context: JsonObject
  readonly times: Times
  readonly receipt: Receipt
}

/**
 * `undefined` leaves a key out: JSON.stringify passes over it. Unchanged keys keep their place.
 * `null`: the call was too wide, and is too large as it came.
 */
const storedBody = (call: JsonObject, stored: Stored): Uint8Array | null => {
  const { times, receipt } = stored
  const body: Body = { ...call }
  if ('writeKey' in call) body['writeKey'] = undefined
  for (const id of idFields) if (id in call) body[id] = stored[id] ?? undefined
  tidyFields(body, stored.type)
  if (stored.type === 'identify') body['traits'] ??= traitsIn(stored.context)
  body['type'] = stored.type
  body['messageId'] = stored.messageId
  body['context'] = stored.context
  body['integrations'] = integrationsOf(call['integrations'], receipt)
  body['timestamp'] = isoOf(times.timestamp)
  body['originalTimestamp'] = isoOf(times.originalTimestamp ?? receipt.receivedAt)
  body['sentAt'] = times.sentAt === null ? undefined : isoOf(times.sentAt)
  body['receivedAt'] = isoOf(receipt.receivedAt)
  const { callBytesMax, propertiesMax } = receipt.limits
  if (callBytesMax > propertiesMax * propertyBytesMin && narrow(body, propertiesMax)) {
    // What was dropped is missing from the body, which then proves nothing of the call's size.
    if (sizeOf(call) > callBytesMax) return null
    receipt.flag('properties_dropped')
  }
  return Buffer.from(JSON.stringify(body))
}

type Body = Record<string, Json | undefined>

/** After judging, what is no map is `null` or PHP's empty one, and what is no text is `null`. */
const tidyFields = (body: Body, type: CallType) => {
  for (const map of mapFields)
    if (map in body && !isObject(body[map])) body[map] = body[map] === null ? undefined : {}
  if (type !== 'page' && type !== 'screen') return
  for (const text of textFields) if (body[text] === null) body[text] = undefined
}

/** One browser SDK says what an identify call tells of its user in the context only. */
const traitsIn = ({ traits }: JsonObject) => (isObject(traits) ? traits : undefined)

const mapFields = ['properties', 'traits'] as const
const textFields = ['name', 'category'] as const
const idFields = ['userId', 'anonymousId', 'previousId', 'groupId'] as const

const integrationsOf = (own: Json | undefined, receipt: Receipt): JsonObject | undefined => {
  const ours = receipt.integrations
  if (isObject(own)) return isEmpty(ours) ? own : { ...ours, ...own }
  if (!isAbsent(own) && !isEmptyArray(own)) receipt.flag('integrations_ignored')
  return isEmpty(ours) ? undefined : ours
}

const isEmpty = (map: JsonObject) => {
  for (const _ in map) return false
  return true
}

/** Fields whose own text the stored body does not hold. */
const replaced = [
  'writeKey',
  'type',
  'timestamp',
  'originalTimestamp',
  'sentAt',
  'receivedAt',
] as const
const shortLengthMax = 64
/** More than the text of all replaced fields together, when each is short. */
const replacedBytesMax = 4_096

/**
 * Measures the call's own JSON without writing it a second time wherever the stored body already
 * proves that it is small enough.
 */
const isTooLarge = (call: JsonObject, body: Uint8Array, bytesMax: number) =>
  (body.length > bytesMax - replacedBytesMax || hasLongReplaced(call)) && sizeOf(call) > bytesMax

const sizeOf = (call: JsonObject) => Buffer.byteLength(JSON.stringify(call))

const hasLongReplaced = (call: JsonObject) =>
  replaced.some((field) => isLong(call[field])) ||
  (call['integrations'] !== undefined && !isObject(call['integrations']))

const isLong = (value: Json | undefined) =>
  typeof value === 'string'
    ? value.length > shortLengthMax
    : typeof value === 'object' && value !== null
