// Answers of the admin API: a status and a body, and one form for every refusal.
import { type Problem, type ProblemCode, problemStatus } from '../control/problem.ts'

export type Answer = {
  readonly status: number
  /** `undefined` sends none. */
  readonly body?: unknown
  /** application/json when absent; any other type sends the body as it is. */
  readonly contentType?: string
  /** In place of a body: sent as it comes, and only as fast as the client reads. */
  readonly stream?: AsyncIterable<string>
}

/** Codes beside those of problems; `docs/admin-api.md` documents each one. */
export const errorStatus = {
  audience_backfilling: 409,
  body_too_large: 413,
  database_unavailable: 503,
  forbidden: 403,
  idempotency_key_used: 409,
  import_moved: 409,
  import_over: 409,
  imports_busy: 429,
  internal: 500,
  json_invalid: 400,
  log_unavailable: 503,
  media_type_unsupported: 415,
  not_found: 404,
  not_ready: 503,
  previews_too_many: 429,
  recoveries_too_many: 409,
  recovery_over: 409,
  rebuild_open: 409,
  rebuild_over: 409,
  replay_open: 409,
  replay_over: 409,
  replays_too_many: 409,
  request_invalid: 400,
  streams_too_many: 429,
  suppressions_too_many: 409,
  sync_failed: 500,
  unauthorized: 401,
} as const

export type ErrorCode = keyof typeof errorStatus | ProblemCode

export const ok = (body: unknown): Answer => ({ status: 200, body })
export const created = (body: unknown): Answer => ({ status: 201, body })
export const accepted = (body: unknown): Answer => ({ status: 202, body })
export const gone: Answer = { status: 204 }

export const failure = (code: keyof typeof errorStatus, message: string): Answer => ({
  status: errorStatus[code],
  body: { error: { code, message } },
})

export const notFound = (what: string): Answer => failure('not_found', `there is no ${what}`)

/** The first problem gives code and message, all of them are listed; a conflict only when it is one. */
export const refusal = (problems: readonly Problem[]): Answer => {
  const [first] = problems as [Problem]
  const statuses = problems.map(({ code }) => problemStatus[code])
  return {
    status: statuses.includes(400) ? 400 : problemStatus[first.code],
    body: { error: { code: first.code, message: first.message, problems } },
  }
}
