// The installation's key for ids that must not be kept, and what is made of an id with it.
import { hash } from 'node:crypto'
import type { IdentityKind } from '../domain/identity.ts'
import { type SipKey, siphash, sipKeyOf } from '../domain/siphash.ts'
import { hashBytes } from '../domain/suppressed-set.ts'
import { suppressionText } from '../domain/suppression.ts'
import type { Sql } from '../postgres/sql.ts'

/** Made by the migration. */
export const loadSuppressionKey = async (sql: Sql): Promise<SipKey> => {
  const { rows } = await sql.query<{ key: string }>('select key from suppression_key')
  return sipKeyOf(hash('sha256', (rows[0] as { key: string }).key, 'buffer'))
}

export type Id = {
  readonly workspaceId: number
  readonly kind: IdentityKind
  readonly value: string
}

export const hashOf = (key: SipKey, { workspaceId, kind, value }: Id): Buffer =>
  hashText(key, suppressionText(workspaceId, kind, value))

/** Of anything else that is compared and must not be kept. */
export const hashText = (key: SipKey, text: string): Buffer => {
  const into = { buffer: Buffer.alloc(hashBytes), at: 0 }
  siphash(key, text, into)
  return into.buffer
}
