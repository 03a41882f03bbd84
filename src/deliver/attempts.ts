// The attempt log: one row per request made, gathered and copied beside the settle path.
import { setTimeout as sleep } from 'node:timers/promises'
import { copyHeader, copyTrailer } from '../postgres/binary-copy.ts'
import { type Attempt, attemptBytesMax, attemptColumns, putAttempt } from './attempt-rows.ts'
import { openSignal, type Signal } from './signal.ts'
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
  readonly chunkFull: Signal
}

type Gathered = Omit<AttemptLog, 'chunkFull'>

const nothing = (): Gathered => ({ chunks: [], rows: 0, bytes: 0, dropped: 0, days: new Set() })

export const openAttemptLog = (): AttemptLog => ({ ...nothing(), chunkFull: openSignal() })

/** Some hundred rows: written in little pieces, as they fill, they hold nobody up. */
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

const chunkFor = ({ chunks, chunkFull }: AttemptLog, most: number): Chunk => {
  const last = chunks.at(-1)
  if (last && last.bytes + most <= last.buffer.length) return last
  if (last) chunkFull.ring()
  const buffer = Buffer.allocUnsafeSlow(Math.max(chunkBytes, most))
  const chunk = { buffer, bytes: 0, rows: 0 }
  chunks.push(chunk)
  return chunk
}

/** As chunks fill, and what is there every so often. */
export const writeAttempts = async (stage: Stage, halt: AbortSignal): Promise<void> => {
  const { attempts, limits } = stage
  halt.addEventListener('abort', attempts.chunkFull.ring)
  let isTaken = true
  while (!halt.aborted) {
    if (isTaken && attempts.chunks.length < 2) await attempts.chunkFull.wait(limits.attemptEveryMs)
    // What Postgres does not take fills chunks, too: it is not asked again at once.
    if (!isTaken)
      await sleep(limits.attemptEveryMs, undefined, { signal: halt }).catch(() => undefined)
    isTaken = await flushAttempts(stage)
  }
}

/** Whether they were written; if not, they are kept as far as there is room. */
export const flushAttempts = async (stage: Stage): Promise<boolean> => {
  const { attempts, deps } = stage
  const { rows, dropped } = attempts
  if (rows === 0) return true
  const taken = { ...attempts }
  Object.assign(attempts, nothing())
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
    return true
  } catch (error) {
    keep(stage, taken)
    deps.logger.error({ err: error, attempts: rows }, 'attempts.failed')
    return false
  }
}

/** For the next time, as far as there is room: the older ones. */
const keep = ({ attempts, limits }: Stage, taken: Gathered): void => {
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
