// The rebuild stage: of all processes that run it one works on the rebuild that is open, from request to swap.
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../fault.ts'
import { isAway } from '../postgres/away.ts'
import { leadOnce } from '../postgres/lead.ts'
import { type Connection, isReplayable } from '../postgres/sql.ts'
import { unwoundBy } from '../project/batch.ts'
import type { Running } from '../running.ts'
import type { RebuildDeps } from './deps.ts'
import { rebuildLimits } from './limits.ts'
import { countEnd, openRebuildMeter } from './meter.ts'
import { dropLeftSchemas } from './schema.ts'
import { workOn } from './steps.ts'
import { findOpen, turnRebuild } from './store.ts'

type StartDeps = Omit<RebuildDeps, 'limits' | 'meter'> & {
  readonly limits?: Partial<RebuildDeps['limits']>
  readonly meter?: RebuildDeps['meter']
}

export const startRebuild = (start: StartDeps): Running => {
  const deps: RebuildDeps = {
    ...start,
    meter: start.meter ?? openRebuildMeter(),
    limits: { ...rebuildLimits, ...start.limits },
  }
  const stopping = new AbortController()
  const done = serve(deps, stopping.signal)
  done.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return done
    },
    done,
  }
}

const serve = async (deps: RebuildDeps, stopping: AbortSignal): Promise<void> => {
  while (!stopping.aborted) {
    try {
      const term = (seat: Connection) => workWhileHeld(deps, seat, stopping)
      await leadOnce(deps.pool, { key: lockKey, term })
    } catch (error) {
      if (stopping.aborted) return
      if (!isPassing(error)) await fail(deps, error)
      deps.logger.warn({ err: error }, 'rebuild.interrupted')
    }
    await pause(deps.limits.pollMs, stopping)
  }
}

/** Whoever goes on then starts from what is stored. */
const isPassing = (error: unknown): boolean =>
  isAway(error) || isReplayable(error) || unwoundBy(error) !== null

/** What trying again cannot mend ends the rebuild, and nothing else: live does not depend on it. */
const fail = async ({ pool, clock, logger, meter }: RebuildDeps, error: unknown): Promise<void> => {
  const open = await findOpen(pool).catch(() => null)
  if (open === null) return
  const reason = error instanceof Fault ? error.message : String(error)
  const isFailed = await turnRebuild(pool, {
    ...{ id: open.id, from: open.state, to: 'failed' },
    at: clock(),
    reason,
  }).catch(() => false)
  if (isFailed) countEnd(meter, 'failed')
  logger.error({ err: error, rebuildId: open.id }, 'rebuild.failed')
}

/** 'MILLREBU' read as a number: held by the session of the one that works. */
const lockKey = '5567930507248615509'

/** The session's end gives the lock back: a killed process leaves its rebuild to the next. */
const workWhileHeld = async (
  deps: RebuildDeps,
  seat: Connection,
  stopping: AbortSignal,
): Promise<void> => {
  const { meter } = deps
  try {
    while (!stopping.aborted) {
      const open = await findOpen(seat)
      meter.state = open?.state ?? null
      if (open === null) meter.left = 0
      const dropped = await dropLeftSchemas(seat, open?.id ?? null)
      if (dropped.length > 0) deps.logger.info({ dropped }, 'rebuild.dropped')
      if (open !== null) await workOn(deps, open, { seat, stopping })
      await pause(deps.limits.pollMs, stopping)
    }
  } finally {
    meter.state = null
    meter.left = 0
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal }).catch(() => undefined)
