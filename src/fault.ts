// The one error class: something failed that is neither an expected outcome nor a bug.

/** Every fault code; `docs/errors.md` documents each one and a test compares the two lists. */
export const faultCodes = [
  'archive_damaged',
  'archive_unavailable',
  'config_invalid',
  'database_unreachable',
  'embedded_postgres_failed',
  'log_closed',
  'log_gap',
  'log_unavailable',
  'migration_changed',
  'migration_newer',
  'port_taken',
  'position_lost',
  'post_closed',
  'schema_incompatible',
  'schema_unknown',
  'secret_damaged',
  'secret_key_missing',
  'secret_key_wrong',
] as const

export type FaultCode = (typeof faultCodes)[number]

type FaultOptions = { readonly cause?: unknown; readonly retriable?: boolean }

export class Fault extends Error {
  readonly code: FaultCode
  /** Whether the same operation may succeed when tried again. */
  readonly retriable: boolean

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'Fault'
    this.code = code
    this.retriable = options.retriable ?? false
  }
}
