// Finds the write key a request speaks for: the header first, then the body, then its calls.
import { isObject, type Json, type JsonObject } from '../domain/message.ts'

/** Of `Authorization: Basic`; the colon may be missing. `null` when there is none to be read. */
export const keyOfHeader = (authorization: string | undefined): string | null => {
  const credentials = /^basic +([a-z0-9+/_-]+=*) *$/i.exec(authorization ?? '')?.[1]
  if (credentials === undefined) return null
  const [key] = Buffer.from(credentials, 'base64').toString('utf8').split(':', 1)
  return key || null
}

export const keyOfBody = (body: JsonObject, calls: readonly Json[] | null): string | null => {
  const own = body['writeKey']
  if (typeof own === 'string' && own !== '') return own
  return calls ? keyOfCalls(calls) : null
}

/** Only when all agree. */
const keyOfCalls = (calls: readonly Json[]): string | null => {
  const first = calls[0]
  if (!isObject(first)) return null
  const key = first['writeKey']
  if (typeof key !== 'string' || key === '') return null
  return calls.every((call) => isObject(call) && call['writeKey'] === key) ? key : null
}
