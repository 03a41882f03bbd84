// Sealing: what is secret in the configuration is kept encrypted, by a key that the database never holds.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { Fault } from '../fault.ts'

export type Key = {
  /** Tells keys apart without telling anything of them: it stands before what they sealed. */
  readonly id: string
  readonly bytes: Uint8Array
}

export type Keyring = {
  /** Seals and opens; `null`: nothing can be sealed, and only what was never sealed can be read. */
  readonly current: Key | null
  /** Open what was sealed before `current` took over. */
  readonly previous: readonly Key[]
}

export const keyBytes = 32
const keyIdBytes = 4

/** 32 bytes in hex or base64, as the settings take them. */
export const keyOf = (text: string): Key => {
  const bytes = Buffer.from(text, /^[0-9A-Fa-f]{64}$/.test(text) ? 'hex' : 'base64')
  if (bytes.length !== keyBytes) throw new Error(`a secret key has ${keyBytes} bytes`)
  const digest = createHash('sha256').update('millrace key id').update(bytes).digest()
  return { id: digest.subarray(0, keyIdBytes).toString('hex'), bytes }
}

export const newKey = (): string => randomBytes(keyBytes).toString('base64')

export const keyringOf = (current: string | null, previous: readonly string[]): Keyring => ({
  current: current === null ? null : keyOf(current),
  previous: previous.map(keyOf),
})

const cipher = 'aes-256-gcm'
const format = 1
const nonceBytes = 12
const tagBytes = 16
const headBytes = 1 + keyIdBytes + nonceBytes + tagBytes

/**
 * `place` names the row the secret belongs to: copied into another row, it does not open.
 * Format, key id, nonce, tag, then the text encrypted.
 */
export const seal = ({ current }: Keyring, place: string, text: string): Buffer => {
  if (current === null) throw missing(`${place} holds a secret`)
  const nonce = randomBytes(nonceBytes)
  const encrypting = createCipheriv(cipher, current.bytes, nonce)
  encrypting.setAAD(associated(current.id, place))
  const sealed = Buffer.concat([encrypting.update(text, 'utf8'), encrypting.final()])
  const id = Buffer.from(current.id, 'hex')
  return Buffer.concat([Buffer.of(format), id, nonce, encrypting.getAuthTag(), sealed])
}

export const unseal = ({ current, previous }: Keyring, place: string, sealed: Buffer): string => {
  if (current === null) throw missing(`the secrets of ${place} are sealed`)
  if (sealed[0] !== format || sealed.length < headBytes) throw damaged(place)
  const id = sealed.toString('hex', 1, 1 + keyIdBytes)
  const key = [current, ...previous].find((each) => each.id === id)
  if (!key) throw wrong(place, id)
  const nonce = sealed.subarray(1 + keyIdBytes, 1 + keyIdBytes + nonceBytes)
  const decrypting = createDecipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes })
  decrypting.setAAD(associated(id, place))
  decrypting.setAuthTag(sealed.subarray(1 + keyIdBytes + nonceBytes, headBytes))
  try {
    return (
      decrypting.update(sealed.subarray(headBytes), undefined, 'utf8') + decrypting.final('utf8')
    )
  } catch (error) {
    throw damaged(place, error)
  }
}

const opened = new WeakMap<Keyring, ReadonlyMap<string, string>>()

export type Opening = {
  open(place: string, sealed: Buffer): string
  /** Remembers what this reading opened, and forgets what it did not. */
  end(): void
}

/** The configuration is read whole at every change: what the last reading opened is not deciphered again. */
export const opening = (keyring: Keyring): Opening => {
  const known = opened.get(keyring)
  const seen = new Map<string, string>()
  return {
    open: (place, sealed) => {
      const name = `${place} ${sealed.toString('latin1')}`
      const text = known?.get(name) ?? unseal(keyring, place, sealed)
      seen.set(name, text)
      return text
    },
    end: () => void opened.set(keyring, seen),
  }
}

/** What stands before everything this key sealed, for SQL to compare. */
export const markOf = (key: Key): Buffer =>
  Buffer.concat([Buffer.of(format), Buffer.from(key.id, 'hex')])

const associated = (keyId: string, place: string): Buffer =>
  Buffer.from(`millrace/${format}/${keyId}/${place}`)

const missing = (why: string) =>
  new Fault(
    'secret_key_missing',
    `${why}, and MILLRACE_SECRET_KEY is not set: set it to the key of this installation, or for a new one to 32 random bytes (openssl rand -base64 32)`,
  )

const wrong = (place: string, id: string) =>
  new Fault(
    'secret_key_wrong',
    `the secrets of ${place} were sealed with key ${id}, which is neither MILLRACE_SECRET_KEY nor among MILLRACE_SECRET_KEY_PREVIOUS: set the key they were sealed with as one of them`,
  )

const damaged = (place: string, cause?: unknown) =>
  new Fault(
    'secret_damaged',
    `the secrets of ${place} do not open with the key they were sealed with: the row was changed by hand or copied, restore it from a backup or set its secrets anew`,
    { cause },
  )
