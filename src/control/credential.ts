// Credentials of the control plane: how keys and tokens are made, and the hash that is all we keep.
import { createHash, randomBytes } from 'node:crypto'

/** Public: names a source at collection. */
export const newWriteKey = (): string => `wk_${randomBytes(18).toString('base64url')}`

/** Shown once, kept as a hash. */
export const newSecretKey = (): string => `sk_${randomBytes(24).toString('base64url')}`

/** Shown once, kept as a hash. */
export const newAdminToken = (): string => `at_${randomBytes(24).toString('base64url')}`

/** Plain SHA-256: the secrets are random, and a lookup by hash must stay one index probe. */
export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
