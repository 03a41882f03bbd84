// What surrounds the calls of a request: which calls, and what the request says about all of them.
import { clean } from '../../domain/json.ts'
import { isObject, type Json, type JsonObject } from '../../domain/message.ts'
import type { Flag } from '../../domain/rejection.ts'
import { type Refusal, refuse } from '../answer/answer.ts'
import type { CollectLimits } from '../limits.ts'
import { keyOfBody, keyOfCalls } from './write-key.ts'

export type Envelope = {
  readonly calls: readonly Json[]
  readonly writeKey: string | null
  readonly sentAt: Json | undefined
  readonly context: JsonObject
  readonly integrations: JsonObject
}

type Opening = {
  readonly limits: CollectLimits
  readonly flag: (flag: Flag) => void
  readonly queryKey: string | null
}

const nothing: JsonObject = {}

/** A request of one call is its own envelope. */
export const openCall = (json: Json, queryKey: string | null): Envelope | Refusal =>
  isObject(json)
    ? {
        calls: [json],
        writeKey: keyOfBody(json) ?? queryKey,
        sentAt: undefined,
        context: nothing,
        integrations: nothing,
      }
    : refuse('body_not_object', 'the body is not a JSON object')

export const openBatch = (json: Json, { limits, flag, queryKey }: Opening): Envelope | Refusal => {
  if (!isObject(json)) return refuse('body_not_object', 'the body is not a JSON object')
  const calls = json['batch']
  if (!Array.isArray(calls)) return refuse('batch_not_array', 'the body has no array "batch"')
  const depthMax = limits.depthMax - 1
  const context = clean(mapOf(json['context']), { depthMax, flag })
  if ('rejected' in context) return refuse(context.rejected, 'the batch has an unusable context')
  const integrations = clean(mapOf(json['integrations']), { depthMax, flag })
  if ('rejected' in integrations)
    return refuse(integrations.rejected, 'the batch has unusable integrations')
  return {
    calls,
    writeKey: keyOfBody(json) ?? queryKey ?? keyOfCalls(calls),
    sentAt: json['sentAt'],
    context: context.value as JsonObject,
    integrations: integrations.value as JsonObject,
  }
}

const mapOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : nothing)
