// The words for why a message was given up: what writes one down and what looks for one agree here.

export const deadReasons = [
  'address_blocked',
  'cancelled',
  'expired',
  'internal',
  'invalid_request',
  'invalid_url',
  'log_expired',
  'no_url',
  'redirect',
  'tls_private_root',
  'tls_self_signed',
  'tls_settings_invalid',
  'url_disabled',
] as const

/** With a status that is final: of a temporary one a message dies `expired`. */
export type DeadReason = (typeof deadReasons)[number] | `status_${number}`

export const deadStatusPattern = '^status_4(?!08|25|29)[0-9][0-9]$'

const deadStatus = new RegExp(deadStatusPattern)
const words: ReadonlySet<string> = new Set(deadReasons)

export const isDeadReason = (text: string): text is DeadReason =>
  words.has(text) || deadStatus.test(text)
