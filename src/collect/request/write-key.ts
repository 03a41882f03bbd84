// Finds the key a request names: in the header first, then in the body, then in its calls.
import { isUtf8 } from 'node:buffer'
import { isObject, type Json, type JsonObject } from '../../domain/message.ts'

const rememberedMax = 1_024
const rememberedLengthMax = 512

/** A source's clients all send the same header: reading it once is enough. */
const remembered = new Map<string, string | null>()

/** Of `Authorization: Basic`; the colon may be missing. `null` when there is none to be read. */
export const keyOfHeader = (authorization: string | undefined): string | null => {
  if (authorization === undefined) return null
  const known = remembered.get(authorization)
  if (known !== undefined) return known
  const key = readKey(authorization)
  if (authorization.length > rememberedLengthMax) return key
  if (remembered.size >= rememberedMax) remembered.clear()
  remembered.set(authorization, key)
  return key
}

const readKey = (authorization: string): string | null => {
  const credentials = /^basic +([a-z0-9+/_-]+=*) *$/i.exec(authorization)?.[1]
  if (credentials === undefined) return null
  const bytes = Buffer.from(credentials, 'base64')
  if (!isUtf8(bytes)) return null
  const [key] = bytes.toString('utf8').split(':', 1)
  return key || null
}

export const keyOfBody = (body: JsonObject): string | null => {
  const key = body['writeKey']
  return typeof key === 'string' && key !== '' ? key : null
}

/** Only when all agree. */
export const keyOfCalls = (calls: readonly Json[]): string | null => {
  const first = calls[0]
  const key = isObject(first) ? keyOfBody(first) : null
  if (key === null) return null
  return calls.every((call) => isObject(call) && call['writeKey'] === key) ? key : null
}
