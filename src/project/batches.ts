// The projector's loop: gathers calls of all partitions into one transaction after another.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Debugger } from '../debugger/debugger.ts'
import type { Lease } from '../log/log.ts'
import { isAway } from '../postgres/away.ts'
import { isReplayable } from '../postgres/sql.ts'
import { movesOf, unwoundBy, type Written, writeBatch } from './batch.ts'
import { type Desk, nobodyInHand } from './desk.ts'
import { tellDuplicates } from './duplicate-calls.ts'
import { openFailures } from './failures.ts'
import { lockFirstBatches } from './held.ts'
import { judge, type Verdicts } from './judge.ts'
import type { Lane, LaneQueue, Piece } from './lanes.ts'
import type { ProjectLimits } from './limits.ts'
import { rememberSightings } from './meter.ts'
import { type Prepared, prepareBatch } from './prepare.ts'
import { remember } from './remember.ts'
import type { Turns } from './turns.ts'

export type BatchDeps = {
  readonly desk: Desk
  readonly queue: LaneQueue
  readonly turns: Turns
  readonly limits: ProjectLimits
  readonly logger: Logger
  readonly debugger: Debugger
  readonly fenced: (lease: Lease) => void
  /** Aborts when the stage stops. */
  readonly stopping: AbortSignal
}

/** Returns when the queue is closed, the batch in hand settled. */
export const projectBatches = async (deps: BatchDeps): Promise<void> => {
  const { desk, queue, limits } = deps
  const prepare = (pieces: readonly Piece[]) => prepareBatch(desk, pieces, { fresh: false })
  let ahead: Promise<readonly Piece[]> = queue.take()
  let prepared: Promise<Prepared> | null = null
  for (;;) {
    const pieces = await ahead
    if (pieces.length === 0) return
    const current = prepared ?? prepare(pieces)
    prepared = null
    const decided = Promise.withResolvers<void>()
    const settled = settle(deps, { all: pieces, first: current, decided: decided.resolve })
    // Folding it is this process's work: what comes next would only keep Postgres waiting for it.
    await Promise.race([decided.promise, settled])
    if (queue.size() * 2 >= limits.batchCallsMax) {
      // Enough waits for a batch of its own: decide it while this one is written.
      ahead = queue.take()
      prepared = ahead.then(prepare)
      prepared.catch(() => undefined)
      await settled
    } else {
      await settled
      await linger(queue, limits)
      ahead = queue.take()
    }
  }
}

/** A few calls right after a batch are likely followed by more; after a pause they are not kept waiting. */
const linger = async (queue: LaneQueue, limits: ProjectLimits): Promise<void> => {
  if (queue.size() > 0 && queue.size() < limits.batchCallsMax) await sleep(limits.gatherMs)
}

type Settling = {
  readonly all: readonly Piece[]
  readonly first: Promise<Prepared>
  readonly decided: () => void
}

const settle = async (deps: BatchDeps, { all, first, decided }: Settling): Promise<void> => {
  const { desk, limits, logger } = deps
  const began = performance.now()
  let prepared: Prepared | null = null
  let fresh = false
  const failures = openFailures(limits.replaysMax)
  for (let tries = 0; ; tries++) {
    const pieces = all.filter(({ lane }) => !lane.lost)
    if (pieces.length === 0) return
    try {
      prepared ??=
        tries === 0 && pieces.length === all.length
          ? await first
          : await prepareBatch(desk, pieces, { fresh })
      const moves = movesOf(pieces)
      const verdicts = await judge(pieces)
      const written = await write(deps, { prepared, verdicts, moves, decided })
      remember(desk, { moves, verdicts, written })
      if (written !== null && desk.sightings !== null)
        rememberSightings(desk.sightings, written.metered)
      tellDuplicates(deps.debugger, pieces, verdicts)
      if (written !== null) logBatch(deps, { pieces, verdicts, written, began, tries })
      return
    } catch (error) {
      Object.assign(desk, nobodyInHand)
      const reason = await recover(deps, error, { tries, pieces, outageMs: failures.awayMs() })
      logger.warn({ reason, tries, calls: callsIn(pieces) }, 'batch.replayed')
      fresh = reason === 'stale'
      prepared = null
      failures.note(reason)
    }
  }
}

const callsIn = (pieces: readonly Piece[]) =>
  pieces.reduce((sum, { calls }) => sum + calls.length, 0)

/** `null` when an earlier try had been committed already. */
const write = async (
  { desk, turns }: BatchDeps,
  batch: Parameters<typeof writeBatch>[1],
): Promise<Written | null> => {
  try {
    return await turns(() => writeBatch(desk, batch))
  } catch (error) {
    if (unwoundBy(error)?.type === 'committed') return null
    throw error
  }
}

type Tries = {
  readonly tries: number
  readonly pieces: readonly Piece[]
  readonly outageMs: number
}

/** Says why the batch is tried again, or throws what no further try can mend. */
const recover = async (
  { desk, limits, logger, fenced, stopping }: BatchDeps,
  error: unknown,
  { tries, pieces, outageMs }: Tries,
): Promise<string> => {
  const unwound = unwoundBy(error)
  switch (unwound?.type) {
    case 'lost':
      for (const { lease, lose } of unwound.lanes) {
        logger.warn({ topic: lease.topic, partition: lease.partition }, 'position.lost')
        lose()
        fenced(lease)
      }
      return 'lost'
    case 'stale':
      if (unwound.plan !== null) desk.plan = unwound.plan
      else desk.lockFirst = lockFirstBatches
      return 'stale'
    case 'committed':
    case undefined:
      break
  }
  if (isReplayable(error)) {
    await sleep(Math.random() * Math.min(5 * (tries + 1), 100))
    return 'conflict'
  }
  if (!isAway(error) || outageMs > limits.outageMs) throw error
  // Their positions have not moved: whoever starts next reads them again.
  if (stopping.aborted) for (const { lane } of pieces) lane.lose()
  else await sleep(limits.retryMs)
  return 'outage'
}

type Line = {
  readonly pieces: readonly Piece[]
  readonly verdicts: Verdicts
  readonly written: Written
  readonly began: number
  readonly tries: number
}

const logBatch = ({ logger }: BatchDeps, line: Line): void => {
  const { pieces, verdicts, written, began, tries } = line
  if (!logger.isLevelEnabled('debug')) return
  let duplicates = 0
  for (const { duplicate } of verdicts.values())
    for (const is of duplicate) duplicates += is ? 1 : 0
  logger.debug(
    {
      calls: callsIn(pieces),
      partitions: new Set<Lane>(pieces.map(({ lane }) => lane)).size,
      duplicates,
      users: written.held.size,
      written: written.users.length,
      flips: written.flips.length,
      merges: written.merges.length,
      replays: tries,
      durationMs: Math.round(performance.now() - began),
    },
    'batch.projected',
  )
}
