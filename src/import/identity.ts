// What an import is known by, and the ids of calls that bring none: the same for the same content, always.
import { hash } from 'node:crypto'

/** The digest of the content, with what decides how it is read: another mapping makes other calls. */
export const identityOf = (digest: string, reading: unknown): string =>
  hash('sha256', `${digest} ${JSON.stringify(reading)}`, 'hex')

/** RFC 9562, version 5. */
export const uuid5 = (namespace: Uint8Array, name: string): string => {
  const bytes = hash('sha1', Buffer.concat([namespace, Buffer.from(name)]), 'buffer')
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export const bytesOfUuid = (uuid: string): Uint8Array =>
  Buffer.from(uuid.replaceAll('-', ''), 'hex')

/** RFC 9562's namespace for ISO OIDs, under which keys of imports are made from their identities. */
const namespace = bytesOfUuid('6ba7b812-9dad-11d1-80b4-00c04fd430c8')

export const keyOf = (sourceId: number, identity: string): string =>
  uuid5(namespace, `millrace import ${sourceId} ${identity}`)

/** By line, and by place in it where a line holds several calls. */
export const messageIdOf = (key: Uint8Array, line: number, index: number): string =>
  uuid5(key, `${line}.${index}`)
