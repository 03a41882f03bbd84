// The headers a message is signed with: what a receiver with the shared secret recomputes over the bytes it got.
import { createHmac } from 'node:crypto'
import type { Destination } from './configuration.ts'
import { hmacSha1 } from './hmac-sha1.ts'

/** Lowercase hex HMAC-SHA1 over the very bytes sent. */
export const sign = (secret: string, bytes: Uint8Array): string => hmacSha1(secret, bytes)

type Signing = Pick<Destination, 'sharedSecret' | 'nextSharedSecret' | 'signatures'>

type Signed = { readonly messageId: string; readonly body: Uint8Array }

const unsigned: Readonly<Record<string, string>> = {}

/** Made at each try, so that a retry after the switch is signed with the new secret. `now` in epoch ms. */
export const signedHeaders = (
  destination: Signing,
  message: Signed,
  now: number,
): Readonly<Record<string, string>> => {
  const secret = signingSecret(destination, now)
  if (secret === null) return unsigned
  const { body } = message
  const signature = { 'X-Signature': sign(secret, body) }
  const { standardWebhooks, sha256, next } = destination.signatures
  if (!standardWebhooks && !sha256 && !next) return signature
  const waiting = waitingSecret(destination, now)
  return {
    ...signature,
    ...(next && waiting !== null ? { 'X-Signature-Next': sign(waiting, body) } : {}),
    ...(sha256 ? { 'X-Signature-256': sign256(secret, body) } : {}),
    ...(standardWebhooks ? standardHeaders({ message, secret, waiting, now }) : {}),
  }
}

/** What every try is signed with now; `null`: nothing. */
export const signingSecret = (
  { sharedSecret, nextSharedSecret }: Pick<Signing, 'sharedSecret' | 'nextSharedSecret'>,
  now: number,
): string | null =>
  nextSharedSecret !== null && now >= nextSharedSecret.activateAt
    ? nextSharedSecret.secret
    : sharedSecret

const waitingSecret = ({ nextSharedSecret }: Signing, now: number): string | null =>
  nextSharedSecret !== null && now < nextSharedSecret.activateAt ? nextSharedSecret.secret : null

const sign256 = (secret: string, bytes: Uint8Array): string =>
  createHmac('sha256', secret).update(bytes).digest('hex')

type Standard = {
  readonly message: Signed
  readonly secret: string
  readonly waiting: string | null
  readonly now: number
}

/** As www.standardwebhooks.com asks: any one of the signatures being right is enough for a receiver. */
const standardHeaders = ({ message, secret, waiting, now }: Standard) => {
  const id = webhookId(message.messageId)
  const timestamp = String(Math.floor(now / 1_000))
  const signatures = [secret, ...(waiting === null ? [] : [waiting])].map((each) => {
    const hmac = createHmac('sha256', standardKey(each)).update(`${id}.${timestamp}.`)
    return `v1,${hmac.update(message.body).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

/**
 * The message id, the same in every try. Clients choose it: what no header holds is escaped, and the full
 * stop too, which must not stand in a signed id.
 */
export const webhookId = (messageId: string): string =>
  encodeURIComponent(messageId.toWellFormed()).replaceAll('.', '%2E')

const standardPrefix = 'whsec_'

/** A secret in the form of Standard Webhooks is base64 of the key; any other is the key itself. */
const standardKey = (secret: string): Uint8Array | string =>
  secret.startsWith(standardPrefix)
    ? Buffer.from(secret.slice(standardPrefix.length), 'base64')
    : secret

/** Whether the libraries of Standard Webhooks can read it: base64 of 24 to 64 bytes, or no such form at all. */
export const isStandardSecret = (secret: string): boolean => {
  if (!secret.startsWith(standardPrefix)) return true
  const text = secret.slice(standardPrefix.length)
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text && bytes.length >= 24 && bytes.length <= 64
}

export const standardSecretOf = (key: Uint8Array): string =>
  `${standardPrefix}${Buffer.from(key).toString('base64')}`
