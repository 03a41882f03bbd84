// The attempt log: one row per request made, gathered and copied beside the settle path.
import type { PostResult } from '../http/post.ts'
import { hashToInt } from './desk.ts'
import { attemptSpan, ensureSpans, spanOf } from './spans.ts'
import type { Delivery, Stage } from './stage.ts'

export type AttemptLog = {
  /** COPY lines not written yet. */
  lines: string[]
  characters: number
  dropped: number
  /** The days they started in. */
  days: Set<number>
}

export const openAttemptLog = (): AttemptLog => ({
  lines: [],
  characters: 0,
  dropped: 0,
  days: new Set(),
})

type Attempt = {
  readonly delivery: Delivery
  readonly url: string
  readonly result: PostResult
  readonly attempt: number
  readonly startedAt: number
  /** Its chain's order was suspended. */
  readonly isSuspended?: boolean
}

/** Past the buffer's bound attempts are counted, not kept: the log must never hold delivery back. */
export const recordAttempt = (stage: Stage, attempt: Attempt): void => {
  const { attempts, limits } = stage
  const isFull =
    attempts.lines.length >= limits.attemptBufferMax ||
    attempts.characters >= limits.attemptCharactersMax
  if (isFull) {
    attempts.dropped += 1
    return
  }
  const line = lineOf(attempt, limits.attemptHeadMax)
  attempts.days.add(spanOf(attemptSpan, attempt.startedAt))
  attempts.characters += line.length
  attempts.lines.push(line)
}

/** The columns in the order of `columns`. */
const lineOf = (attempt: Attempt, headMax: number): string => {
  const { delivery, result, isSuspended } = attempt
  const { chain, row } = delivery
  const { answer, phases, status } = result
  const about = `${isoOf(attempt.startedAt)}\t${chain.partition.topic}\t${chain.partition.partition}\t${
    delivery.offset
  }\t${chain.lane.destinationId}\t${hashToInt(chain.hash)}\t${copied(delivery.messageId)}\t${
    attempt.attempt
  }\t${copied(shown(attempt.url))}`
  const reason = answer.type === 'delivered' ? '\\N' : answer.reason
  const head = result.head === '' ? '\\N' : copied(result.head.slice(0, headMax))
  return `${about}\t${Math.round(result.durationMs)}\t${answer.type}\t${reason}\t${status ?? '\\N'}\t${timed(
    phases.dnsMs,
  )}\t${timed(phases.connectMs)}\t${timed(phases.tlsMs)}\t${timed(phases.firstByteMs)}\t${
    result.reused
  }\t${isSuspended === true}\t${row?.recoveryId ?? '\\N'}\t${head}\n`
}

/** Tenths of a millisecond tell enough. */
const timed = (ms: number | null): string | number =>
  ms === null ? '\\N' : Math.round(ms * 10) / 10

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
  'started_at, topic, partition, log_offset, destination_id, chain, message_id, attempt, url, duration_ms, outcome, reason, status, dns_ms, connect_ms, tls_ms, first_byte_ms, reused, order_suspended, recovery_id, response_head'

export const flushAttempts = async (stage: Stage): Promise<void> => {
  const { attempts, deps } = stage
  const { lines, dropped, days, characters } = attempts
  if (lines.length === 0) return
  Object.assign(attempts, openAttemptLog())
  if (dropped > 0) deps.logger.warn({ dropped }, 'attempts.dropped')
  const chunks = [Buffer.from(lines.join(''), 'utf8')]
  try {
    await ensureDays(stage, days)
    await deps.pool.connect((connection) =>
      connection.copyIn(`copy attempt (${columns}) from stdin`, chunks),
    )
  } catch (error) {
    // Kept for the next time, as far as there is room.
    attempts.lines = [...lines, ...attempts.lines].slice(0, stage.limits.attemptBufferMax)
    attempts.characters += characters
    for (const day of days) attempts.days.add(day)
    deps.logger.error({ err: error, attempts: lines.length }, 'attempts.failed')
  }
}

const ensureDays = async (stage: Stage, days: ReadonlySet<number>): Promise<void> => {
  const missing = [...days].filter((day) => !stage.days.has(day))
  if (missing.length === 0) return
  await ensureSpans(stage.deps.pool, attemptSpan, missing)
  for (const day of missing) stage.days.add(day)
}
