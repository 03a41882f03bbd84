// What stands on the lines of a chunk: calls, each with its line, or why there is none.
import type { Line } from '../domain/fixed-text.ts'
import type { Json } from '../domain/message.ts'
import type { RejectionCode } from '../domain/rejection.ts'

/** Codes beside those of calls. */
export type LineCode = 'invalid_json' | 'line_too_long' | 'row_invalid' | 'value_invalid'

export type LineRejection = {
  readonly line: number
  /** Of the call within its line, where that holds a batch. */
  readonly index: number
  readonly code: RejectionCode | LineCode
  /** Never what the line held. */
  readonly reason: string
}

export type LineCall = { readonly line: number; readonly index: number; readonly call: Json }

export type LineRecord = LineCall | LineRejection

/** A line that nobody has looked into yet. */
export type LineText = { readonly line: number; readonly text: Line }

export const reasonOf: Readonly<Record<RejectionCode | LineCode, string>> = {
  call_too_large: "the call is larger than its source's limit",
  category_not_string: '"category" is not a string',
  context_not_object: '"context" is not an object',
  event_not_defined: 'a track call needs an "event"',
  event_not_string: '"event" is not a string',
  id_not_string: 'an id is neither a string nor a number',
  id_too_long: 'an id is over 512 characters',
  invalid_json: 'the line is not JSON in UTF-8',
  line_too_long: 'the line is over 2 MiB',
  message_id_not_string: '"messageId" is not a string',
  message_id_too_long: '"messageId" is over 100 characters',
  name_not_string: '"name" is not a string',
  no_group_id: 'a group call needs a "groupId"',
  no_previous_id: 'an alias call needs a "previousId"',
  no_user_anon_id: 'there is neither "userId" nor "anonymousId"',
  no_user_id: 'an alias call needs a "userId"',
  not_an_object: 'the line is not a JSON object',
  number_out_of_range: 'a number is too large for any number type',
  properties_not_object: '"properties" is not an object',
  row_invalid: 'the row cannot be read',
  too_deep: 'the call is nested too deep',
  traits_not_object: '"traits" is not an object',
  unknown_type: '"type" is none of identify, track, page, screen, group, alias',
  value_invalid: 'a value is not what the mapping says',
}
