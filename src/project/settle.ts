// Writing a batch: as often as it takes, each time upon what is stored by then.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Debugger } from '../debugger/debugger.ts'
import type { Lease } from '../log/log.ts'
import { isAway } from '../postgres/away.ts'
import { isReplayable, sqlState } from '../postgres/sql.ts'
import { unwoundBy, type Written, writeBatch } from './batch.ts'
import type { Decided } from './decide.ts'
import { type Desk, nobodyInHand } from './desk.ts'
import { tellDuplicates } from './duplicate-calls.ts'
import { openFailures } from './failures.ts'
import { lockFirstBatches } from './held.ts'
import { type Verdicts, verdictsOf } from './judge.ts'
import type { Lane, LaneQueue, Piece } from './lanes.ts'
import type { ProjectLimits } from './limits.ts'
import { rememberSightings } from './meter.ts'
import { type Moves, movesOf } from './moves.ts'
import { type Prepared, prepareBatch } from './prepare.ts'
import { forget, remember } from './remember.ts'
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

/** What was taken from the queue, and is looked up meanwhile. */
export type Taken = { readonly pieces: readonly Piece[]; readonly prepared: Promise<Prepared> }

export type Decision = {
  readonly verdicts: Verdicts
  /** `null` where it has to be decided in its transaction. */
  readonly decided: Decided | null
}

/** Whether it was written at the first try. */
export const settle = async (deps: BatchDeps, batch: Taken & Decision): Promise<boolean> => {
  const { desk, limits, logger } = deps
  const { pieces: all, verdicts } = batch
  const began = performance.now()
  let fresh = false
  const failures = openFailures(limits.replaysMax)
  for (let tries = 0; ; tries++) {
    const pieces = all.filter(({ lane }) => !lane.lost)
    const isFirst = tries === 0 && pieces.length === all.length
    const decided = isFirst ? batch.decided : null
    // The batch before has brought back users who have heard calls of lanes that are lost.
    if (tries === 0 && decided === null && batch.decided !== null) forget(desk, batch.decided)
    if (pieces.length === 0) return false
    try {
      const prepared = await (isFirst ? batch.prepared : prepareBatch(desk, pieces, { fresh }))
      const moves = movesOf(pieces)
      const own = verdictsOf(pieces, verdicts)
      const written = await write(deps, { prepared, verdicts: own, decided, moves })
      keep(deps, { pieces, moves, verdicts: own, written, decided, began, tries })
      return isFirst
    } catch (error) {
      Object.assign(desk, nobodyInHand)
      if (decided !== null) forget(desk, decided)
      const reason = await recover(deps, error, { tries, pieces })
      logger.warn({ reason, tries, calls: callsIn(pieces) }, 'batch.replayed')
      fresh = reason === 'stale'
      failures.note(reason)
    }
  }
}

export const callsIn = (pieces: readonly Piece[]) =>
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
}

/** Says why the batch is tried again, or throws what no further try can mend. */
export const recover = async (
  { desk, limits, logger, fenced, stopping }: BatchDeps,
  error: unknown,
  { tries, pieces }: Tries,
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
    case 'outdated':
      return 'outdated'
    case 'committed':
    case undefined:
      break
  }
  if (isReplayable(error)) {
    await sleep(Math.random() * Math.min(5 * (tries + 1), 100))
    return 'conflict'
  }
  if (!isAway(error)) throw error
  // Their positions have not moved: whoever starts next reads them again.
  if (stopping.aborted) for (const { lane } of pieces) lane.lose()
  else await sleep(limits.retryMs)
  return sqlState(error) === endedWhileIdle ? 'stood_still' : 'outage'
}

/** A batch that takes so long between two statements would do so again. */
const endedWhileIdle = '25P03'

type Line = {
  readonly pieces: readonly Piece[]
  readonly moves: Moves
  readonly verdicts: Verdicts
  /** `null` when it is not known any more what was. */
  readonly written: Written | null
  /** Before its transaction began. */
  readonly decided: Decided | null
  readonly began: number
  readonly tries: number
}

const keep = (deps: BatchDeps, line: Line): void => {
  const { desk, debugger: debugging } = deps
  const { pieces, moves, verdicts, written } = line
  remember(desk, moves, written)
  if (written !== null && desk.sightings !== null)
    rememberSightings(desk.sightings, written.metered)
  tellDuplicates(debugging, pieces, verdicts)
  logBatch(deps, line)
}

const logBatch = ({ logger }: BatchDeps, line: Line): void => {
  const { pieces, verdicts, written, decided, began, tries } = line
  if (written === null || !logger.isLevelEnabled('debug')) return
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
      ahead: decided !== null,
      durationMs: Math.round(performance.now() - began),
    },
    'batch.projected',
  )
}
