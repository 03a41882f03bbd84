// What time does to delivery's tables: hours and days are made ahead, and dropped when nobody needs them.
import { pruneDead } from './dead-store.ts'
import {
  attemptSpan,
  bodySpan,
  dropSpan,
  ensureSpans,
  listSpans,
  type Span,
  spanOf,
} from './spans.ts'
import type { Stage } from './stage.ts'

/** Failing is not the end of delivery: a table that is missing is made where it is needed. */
export const keepHouse = async (stage: Stage): Promise<void> => {
  try {
    await makeAhead(stage)
    await dropPast(stage)
    await forgetDead(stage)
  } catch (error) {
    stage.deps.logger.error({ err: error }, 'housekeeping.failed')
  }
}

const makeAhead = async (stage: Stage): Promise<void> => {
  const { clock, pool } = stage.deps
  const now = clock().getTime()
  for (const [span, known] of [
    [bodySpan, stage.hours],
    [attemptSpan, stage.days],
  ] as const) {
    const current = spanOf(span, now)
    const missing = [current, current + 1, current + 2].filter((number) => !known.has(number))
    await ensureSpans(pool, span, missing)
    for (const number of missing) known.add(number)
    for (const number of known) if (number < current - keptInMind) known.delete(number)
  }
}

const keptInMind = 48

const dropPast = async (stage: Stage): Promise<void> => {
  const { bodyKeepMs, attemptKeepMs } = stage.limits
  await dropBefore(stage, bodySpan, bodyKeepMs)
  await dropBefore(stage, attemptSpan, attemptKeepMs)
}

const dropBefore = async (stage: Stage, span: Span, keepMs: number): Promise<void> => {
  const { pool, clock, logger } = stage.deps
  const before = spanOf(span, clock().getTime() - keepMs)
  for (const number of await listSpans(pool, span)) {
    if (number >= before || stage.stopping) return
    const dropped = await dropSpan(pool, { span, number })
    if (dropped)
      logger.info({ table: span.table, until: new Date((number + 1) * span.ms) }, 'span.dropped')
  }
}

const deadSlice = 2_000

const forgetDead = async (stage: Stage): Promise<void> => {
  const { pool, clock } = stage.deps
  const before = new Date(clock().getTime() - stage.limits.deadKeepMs)
  while (!stage.stopping && (await pruneDead(pool, { before, limit: deadSlice })));
}
