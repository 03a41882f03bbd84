// What the collect stage says over HTTP: the codes of refused requests, their statuses and bodies.
import type { RejectionCode } from '../../domain/rejection.ts'

/**
 * Status by code, for a request refused as a whole. What can never succeed is 400, not 413 or 422:
 * published clients retry those for ever.
 */
export const refusalStatus = {
  batch_not_array: 400,
  body_not_object: 400,
  empty_body: 400,
  internal_error: 500,
  invalid_encoding: 400,
  invalid_json: 400,
  log_unavailable: 503,
  malformed_request: 400,
  method_not_allowed: 405,
  no_write_key: 401,
  not_found: 404,
  origin_not_allowed: 400,
  over_quota: 429,
  overloaded: 429,
  region_not_allowed: 400,
  request_timeout: 503,
  request_too_large: 400,
  series_not_array: 400,
  too_many_calls: 400,
  unknown_write_key: 401,
  unsupported_encoding: 400,
} as const

export type RefusalCode = keyof typeof refusalStatus

export type Refusal = {
  readonly refused: RefusalCode | RejectionCode
  readonly text: string
  /** With 429: when to come again. */
  readonly retryAfterSeconds?: number
  /** For the log line alone. */
  readonly about?: Readonly<Record<string, string | number | null>>
}

export const refuse = (refused: RefusalCode | RejectionCode, text: string): Refusal => ({
  refused,
  text,
})

export type Answer = {
  readonly status: number
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

export const jsonAnswer = (value: object, headers: Readonly<Record<string, string>>): Answer => ({
  status: 200,
  body: JSON.stringify(value),
  headers,
})

/** Both `code` and `message`, and `error`: published clients each read another one. */
export const answerRefusal = ({ refused, text }: Refusal): Answer => ({
  status: refused in refusalStatus ? refusalStatus[refused as RefusalCode] : 400,
  body: JSON.stringify({ success: false, code: refused, message: text, error: text }),
})

export type Rejected = {
  readonly index: number
  readonly messageId: string | null
  readonly code: RejectionCode
}

export const success: Answer = { status: 200, body: '{"success":true}' }

const listedMax = 100

export const answerBatch = (accepted: number, rejected: readonly Rejected[]): Answer =>
  rejected.length === 0
    ? success
    : {
        status: 200,
        body: JSON.stringify({
          success: true,
          accepted,
          rejected: rejected.slice(0, listedMax),
          rejectedCount: rejected.length,
        }),
      }
