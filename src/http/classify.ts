// What a status or a broken connection means: worth another try, or final, and in which word.
import type { DeadReason } from '../domain/dead-reason.ts'
import type { Answer } from '../domain/round.ts'

/** 2xx succeeds; 408, 425, 429 and 5xx pass; everything else is final. */
export const classifyStatus = (status: number, retryAfterMs: number | null): Answer => {
  if (status >= 200 && status <= 299) return { type: 'delivered' }
  if (status === 408 || status === 425 || status === 429 || status >= 500)
    return { type: 'temporary', reason: `status_${status}`, status, retryAfterMs }
  if (status >= 300 && status <= 399) return { type: 'final', reason: 'redirect', status }
  return { type: 'final', reason: `status_${status}`, status }
}

const finalCodes: Readonly<Record<string, DeadReason>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_self_signed',
  MILLRACE_SELF_SIGNED: 'tls_self_signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_private_root',
  MILLRACE_TLS_SETTINGS: 'tls_settings_invalid',
  MILLRACE_ADDRESS_BLOCKED: 'address_blocked',
  ERR_INVALID_URL: 'invalid_url',
  MILLRACE_INVALID_REQUEST: 'invalid_request',
}

const temporaryCodes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  MILLRACE_BAD_ANSWER: 'malformed_answer',
  MILLRACE_HEAD_TOO_LARGE: 'headers_too_large',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'connect_timeout',
  ERR_SOCKET_CONNECTION_TIMEOUT: 'connect_timeout',
  MILLRACE_CONNECT_TIMEOUT: 'connect_timeout',
  MILLRACE_TIMEOUT: 'timeout',
  ENOTFOUND: 'dns_not_found',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_incomplete_chain',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_incomplete_chain',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_incomplete_chain',
  CERT_HAS_EXPIRED: 'tls_expired',
  CERT_NOT_YET_VALID: 'tls_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_wrong_name',
}

/** Families of codes, where the single one says nothing more to an operator. */
const temporaryFamilies: readonly (readonly [RegExp, string])[] = [
  [/^(EAI_|EDNS|ESERVFAIL|ENODATA)/, 'dns_failed'],
  [/^(EPROTO|ERR_SSL_|ERR_TLS_|CERT_|INVALID_|CRL_|PATH_LENGTH)/, 'tls_failed'],
  // Descriptors, ports or memory of this machine: the receiver had no part in it.
  [/^(EMFILE|ENFILE|ENOBUFS|ENOMEM)$/, 'local_resources'],
]

/** An error met before a status line. What nobody knows is worth another try. */
export const classifyError = (error: unknown): Answer => {
  const code = codeOf(error)
  const final = finalCodes[code]
  if (final) return { type: 'final', reason: final, status: null }
  const family = temporaryFamilies.find(([codes]) => codes.test(code))?.[1]
  return {
    type: 'temporary',
    reason: temporaryCodes[code] ?? family ?? 'network_error',
    status: null,
    retryAfterMs: null,
  }
}

/** Happy-eyeballs connects fail with an AggregateError whose members carry the code. */
export const codeOf = (error: unknown): string => {
  const { code, errors, cause } = (error ?? {}) as {
    code?: unknown
    errors?: readonly unknown[]
    cause?: unknown
  }
  if (typeof code === 'string') return code
  const inner = errors?.[0] ?? cause
  return inner ? codeOf(inner) : ''
}

export const codedError = (code: string, message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, cause === undefined ? {} : { cause }), { code })

const dayMs = 86_400_000

/** As in "Sun, 06 Nov 1994 08:49:37 GMT", its two older forms, and ISO 8601, which some receivers send. */
const dates = /^(?:[A-Z][a-z]{2,8},? .*\d:\d\d|\d{4}-\d\d-\d\dT)/
const zoneless = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/

/** Seconds, or a date; anything else says nothing, for much of it passes for a date somewhere. */
export const retryAfterMs = (value: string | undefined, now: number): number | null => {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, dayMs)
  if (!dates.test(text)) return null
  const at = Date.parse(zoneless.test(text) ? `${text} GMT` : text)
  return Number.isNaN(at) ? null : Math.min(Math.max(at - now, 0), dayMs)
}
