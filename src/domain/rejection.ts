// Why a raw call did not become a message, and what was changed in one that did.

/** Every rejection code; `docs/errors.md` documents each one and a test compares the two lists. */
export const rejectionCodes = [
  'call_too_large',
  'category_not_string',
  'context_not_object',
  'event_not_defined',
  'event_not_string',
  'id_not_string',
  'id_too_long',
  'message_id_not_string',
  'message_id_too_long',
  'name_not_string',
  'no_group_id',
  'no_previous_id',
  'no_user_anon_id',
  'no_user_id',
  'not_an_object',
  'number_out_of_range',
  'properties_not_object',
  'too_deep',
  'traits_not_object',
  'unknown_type',
] as const

export type RejectionCode = (typeof rejectionCodes)[number]

export type Rejection = {
  readonly rejected: RejectionCode
  /** The call's own message id, when it has one that can be read. */
  readonly messageId: string | null
}

/** Said once per occurrence and counted: the call was kept, but not exactly as it came. */
export type Flag =
  | 'future_clamped'
  | 'integer_rounded'
  | 'integrations_ignored'
  | 'nul_replaced'
  | 'properties_dropped'
  | 'proto_key_stripped'
  | 'sent_at_unreadable'
  | 'skew_corrected'
  | 'skew_ignored'
  | 'skew_taken_as_delay'
  | 'surrogate_replaced'
  | 'timestamp_before_1970'
  | 'timestamp_unreadable'
