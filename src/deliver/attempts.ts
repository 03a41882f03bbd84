// The attempt log: one row per request made, gathered and copied beside the settle path.
import type { PostResult } from '../http/post.ts'
import type { Delivery, Stage } from './stage.ts'

export type AttemptLog = {
  /** COPY lines not written yet. */
  lines: string[]
  dropped: number
  prunedAt: number | null
}

export const openAttemptLog = (): AttemptLog => ({ lines: [], dropped: 0, prunedAt: null })

type Attempt = {
  readonly delivery: Delivery
  readonly url: string
  readonly result: PostResult
  readonly attempt: number
  readonly startedAt: number
}

/** Past the buffer's bound attempts are counted, not kept: the log must never hold delivery back. */
export const recordAttempt = (stage: Stage, attempt: Attempt): void => {
  const { attempts, limits } = stage
  if (attempts.lines.length >= limits.attemptBufferMax) {
    attempts.dropped += 1
    return
  }
  attempts.lines.push(lineOf(attempt, limits.attemptHeadMax))
}

const lineOf = (attempt: Attempt, headMax: number): string => {
  const { delivery, result } = attempt
  const { partition, lane } = delivery.chain
  const { answer } = result
  const reason = answer.type === 'delivered' ? '\\N' : answer.reason
  const head = result.head === '' ? '\\N' : copied(result.head.slice(0, headMax))
  return `${isoOf(attempt.startedAt)}\t${partition.topic}\t${partition.partition}\t${delivery.offset}\t${
    lane.destinationId
  }\t${copied(delivery.messageId)}\t${attempt.attempt}\t${copied(shown(attempt.url))}\t${Math.round(
    result.durationMs,
  )}\t${answer.type}\t${reason}\t${result.status ?? '\\N'}\t${head}\n`
}

let isoMs = Number.NaN
let iso = ''

/** Most attempts share their millisecond with the one before. */
const isoOf = (ms: number): string => {
  if (ms !== isoMs) {
    isoMs = ms
    iso = new Date(ms).toISOString()
  }
  return iso
}

/** A query may carry a secret, so it is not logged. */
const shown = (url: string): string => {
  const query = url.indexOf('?')
  const bare = query < 0 ? url : url.slice(0, query)
  return bare.includes('@') ? bare.replace(/\/\/[^/@]*@/, '//') : bare
}

/** COPY's text format; Postgres text has no NUL. */
const copied = (text: string): string => {
  const clean = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
  return /[\\\t\n\r]/.test(clean)
    ? clean.replace(/[\\\t\n\r]/g, (char) => escapes[char] ?? '')
    : clean
}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
}

const columns =
  'started_at, topic, partition, log_offset, destination_id, message_id, attempt, url, duration_ms, outcome, reason, status, response_head'

export const flushAttempts = async (stage: Stage): Promise<void> => {
  const { attempts, deps } = stage
  const { lines, dropped } = attempts
  if (lines.length === 0) return
  attempts.lines = []
  attempts.dropped = 0
  if (dropped > 0) deps.logger.warn({ dropped }, 'attempts.dropped')
  const chunks = [Buffer.from(lines.join(''), 'utf8')]
  try {
    await deps.pool.connect((connection) =>
      connection.copyIn(`copy attempt (${columns}) from stdin`, chunks),
    )
  } catch (error) {
    // Kept for the next time, as far as there is room.
    attempts.lines = [...lines, ...attempts.lines].slice(0, stage.limits.attemptBufferMax)
    deps.logger.error({ err: error, attempts: lines.length }, 'attempts.failed')
  }
}

const pruneEveryMs = 3_600_000

/** Attempts are kept for a week; older ones go once an hour. */
export const pruneAttempts = async (stage: Stage): Promise<void> => {
  const now = stage.deps.clock().getTime()
  const { attempts, limits } = stage
  if (attempts.prunedAt !== null && Math.abs(now - attempts.prunedAt) < pruneEveryMs) return
  attempts.prunedAt = now
  const before = new Date(now - limits.attemptKeepMs)
  await stage.deps.pool
    .query('delete from attempt where started_at < $1', [before])
    .catch((error) => stage.deps.logger.error({ err: error }, 'attempts.failed'))
}
