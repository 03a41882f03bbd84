// What can be wrong with a configuration somebody wants saved: a value, never an exception.

/** Every code and the HTTP status it is answered with; `docs/admin-api.md` documents each one. */
export const problemStatus = {
  activate_at_invalid: 400,
  audience_unknown: 400,
  condition_invalid: 400,
  destination_unknown: 400,
  encryption_key_missing: 409,
  field_invalid: 400,
  field_missing: 400,
  field_unknown: 400,
  file_invalid: 400,
  filter_invalid: 400,
  filters_too_many: 400,
  header_duplicate: 400,
  header_name_invalid: 400,
  header_reserved: 400,
  header_value_invalid: 400,
  headers_too_many: 400,
  historical_after_invalid: 400,
  key_empty: 400,
  key_taken: 409,
  last_admin_token: 409,
  mapping_invalid: 400,
  name_invalid: 400,
  name_reserved: 400,
  name_taken: 409,
  origin_invalid: 400,
  origins_too_many: 400,
  scope_invalid: 400,
  secret_key_invalid: 400,
  secret_key_taken: 409,
  shared_secret_invalid: 400,
  shared_secret_missing: 400,
  source_unknown: 400,
  sync_every_invalid: 400,
  audience_referenced: 409,
  timezone_unknown: 400,
  tracking_plan_invalid: 400,
  tracking_plan_too_large: 400,
  webhook_tls_invalid: 400,
  webhook_url_duplicate: 400,
  webhook_url_invalid: 400,
  webhook_url_private: 400,
  webhooks_missing: 400,
  webhooks_too_many: 400,
  workspace_not_empty: 409,
  workspace_required: 400,
  workspace_unknown: 400,
  write_key_invalid: 400,
  write_key_taken: 409,
} as const

export type ProblemCode = keyof typeof problemStatus

export type Problem = {
  readonly code: ProblemCode
  /** JSON pointer to the value at fault: `/webhooks/0/url`. */
  readonly path: string
  readonly message: string
}

/** One segment further down, escaped as RFC 6901 asks. */
export const at = (path: string, key: string | number): string =>
  `${path}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Where a condition's parser found something: `all[0].event` as `/all/0/event`. */
export const pointerOf = (path: string): string =>
  path === '' ? '' : `/${path.replaceAll('[', '.').replaceAll(']', '').split('.').join('/')}`
