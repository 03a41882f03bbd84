// The attempt log: one row per request made, gathered and copied beside the settle path.
import { copyHeader, copyTrailer } from '../postgres/binary-copy.ts'
import { type Attempt, attemptBytesMax, attemptColumns, putAttempt } from './attempt-rows.ts'
import { attemptSpan, ensureSpans, spanOf } from './spans.ts'
import type { Stage } from './stage.ts'

/** Rows in a row, as COPY takes them. */
type Chunk = { readonly buffer: Buffer; bytes: number; rows: number }

export type AttemptLog = {
  /** Not written yet; the last one is being filled. */
  chunks: Chunk[]
  rows: number
  bytes: number
  dropped: number
  /** The days they started in. */
  days: Set<number>
}

export const openAttemptLog = (): AttemptLog => ({
  chunks: [],
  rows: 0,
  bytes: 0,
  dropped: 0,
  days: new Set(),
})

const chunkBytes = 65_536

/** Past the buffer's bound attempts are counted, not kept: the log must never hold delivery back. */
export const recordAttempt = (stage: Stage, attempt: Attempt): void => {
  const { attempts, limits } = stage
  if (attempts.rows >= limits.attemptBufferMax || attempts.bytes >= limits.attemptCharactersMax) {
    attempts.dropped += 1
    return
  }
  const headMax = limits.attemptHeadMax
  const chunk = chunkFor(attempts, attemptBytesMax(attempt, headMax))
  const end = putAttempt(chunk.buffer, attempt, { at: chunk.bytes, headMax })
  attempts.days.add(spanOf(attemptSpan, attempt.startedAt))
  attempts.bytes += end - chunk.bytes
  attempts.rows += 1
  chunk.bytes = end
  chunk.rows += 1
}

const chunkFor = ({ chunks }: AttemptLog, most: number): Chunk => {
  const last = chunks.at(-1)
  if (last && last.bytes + most <= last.buffer.length) return last
  const buffer = Buffer.allocUnsafeSlow(Math.max(chunkBytes, most))
  const chunk = { buffer, bytes: 0, rows: 0 }
  chunks.push(chunk)
  return chunk
}

export const flushAttempts = async (stage: Stage): Promise<void> => {
  const { attempts, deps } = stage
  const { rows, dropped } = attempts
  if (rows === 0) return
  const taken = { ...attempts }
  Object.assign(attempts, openAttemptLog())
  if (dropped > 0) deps.logger.warn({ dropped }, 'attempts.dropped')
  const full = taken.chunks.map(({ buffer, bytes }) => buffer.subarray(0, bytes))
  try {
    await ensureDays(stage, taken.days)
    await deps.pool.connect((connection) =>
      connection.copyIn(`copy attempt (${attemptColumns}) from stdin (format binary)`, [
        copyHeader,
        ...full,
        copyTrailer,
      ]),
    )
  } catch (error) {
    keep(stage, taken)
    deps.logger.error({ err: error, attempts: rows }, 'attempts.failed')
  }
}

/** For the next time, as far as there is room: the older ones. */
const keep = ({ attempts, limits }: Stage, taken: AttemptLog): void => {
  const newer = attempts.chunks
  attempts.chunks = taken.chunks
  let rows = taken.rows
  for (const chunk of newer) {
    if (rows + chunk.rows <= limits.attemptBufferMax) {
      rows += chunk.rows
      attempts.chunks.push(chunk)
      continue
    }
    attempts.rows -= chunk.rows
    attempts.bytes -= chunk.bytes
    attempts.dropped += chunk.rows
  }
  attempts.rows += taken.rows
  attempts.bytes += taken.bytes
  for (const day of taken.days) attempts.days.add(day)
}

const ensureDays = async (stage: Stage, days: ReadonlySet<number>): Promise<void> => {
  const missing = [...days].filter((day) => !stage.days.has(day))
  if (missing.length === 0) return
  await ensureSpans(stage.deps.pool, attemptSpan, missing)
  for (const day of missing) stage.days.add(day)
}
