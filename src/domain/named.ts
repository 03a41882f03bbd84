// Whom the body of a webhook message names: the one list of the fields that hold ids.
import { isObject, type Json } from './message.ts'

export type Named = {
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly previousId: string | null
}

/** Nobody, where the body is no JSON object, or a notice: that a user was deleted is always told. */
export const namedIn = (body: Uint8Array): Named => {
  const message = readJson(body)
  const text = (field: string): string | null => {
    const value = isObject(message) && message['type'] !== 'delete' ? message[field] : null
    return typeof value === 'string' ? value : null
  }
  return {
    userId: text('userId') ?? text('User ID'),
    anonymousId: text('anonymousId'),
    previousId: text('Previous ID'),
  }
}

const readJson = (body: Uint8Array): Json => {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()) as Json
  } catch {
    return null
  }
}
