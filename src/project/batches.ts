// The projector's loop: gathers calls of all partitions into one transaction after another.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Debugger } from '../debugger/debugger.ts'
import type { Lease } from '../log/log.ts'
import { isAway } from '../postgres/away.ts'
import { isReplayable, sqlState } from '../postgres/sql.ts'
import { unwoundBy, type Written, writeBatch } from './batch.ts'
import { type Ahead, aheadOf, type Decided, decideAhead, nothingAhead } from './decide.ts'
import { type Desk, nobodyInHand } from './desk.ts'
import { tellDuplicates } from './duplicate-calls.ts'
import { openFailures } from './failures.ts'
import { lockFirstBatches } from './held.ts'
import { judge, type Verdicts, verdictsOf } from './judge.ts'
import type { Lane, LaneQueue, Piece } from './lanes.ts'
import type { ProjectLimits } from './limits.ts'
import { rememberSightings } from './meter.ts'
import { movesOf } from './moves.ts'
import { besideMs, type Prepared, prepareBatch } from './prepare.ts'
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
type Taken = { readonly pieces: readonly Piece[]; readonly prepared: Promise<Prepared> }

/** Of the batch before, while it is being written. */
type Before = {
  /** `null` while nobody knows what it comes to: the next one has to wait for it. */
  readonly ahead: Ahead | null
  /** Whether it was written as it was decided first. */
  readonly settled: Promise<boolean>
}

const nothingBefore: Before = { ahead: nothingAhead, settled: Promise.resolve(true) }

/**
 * Three batches are under way where enough calls wait: one is written, the next is decided upon what that one
 * will have made, and of a third it is looked up who it is of. Returns when the queue is closed, the batches in
 * hand settled.
 */
export const projectBatches = async (deps: BatchDeps): Promise<void> => {
  const { queue, limits } = deps
  const isBusy = () => queue.size() * 2 >= limits.batchCallsMax
  let before = nothingBefore
  let taken = take(deps)
  for (;;) {
    const batch = await taken
    if (batch.pieces.length === 0) break
    let next = isBusy() ? take(deps) : null
    const decision = await decideNext(deps, batch, before)
    const asDecided = await before.settled
    before = settling(deps, batch, asDecided ? decision : { ...decision, decided: null })
    next ??= isBusy() ? take(deps) : null
    if (next === null) {
      await before.settled
      before = nothingBefore
      await linger(queue, limits)
    }
    taken = next ?? take(deps)
  }
  await before.settled
}

const take = async ({ desk, queue }: BatchDeps): Promise<Taken> => {
  const pieces = await queue.take()
  const prepared = prepareBatch(desk, pieces, { fresh: false })
  prepared.catch(() => undefined)
  return { pieces, prepared }
}

type Decision = {
  readonly verdicts: Verdicts
  /** `null` where it has to be decided in its transaction. */
  readonly decided: Decided | null
}

const decideNext = async (
  deps: BatchDeps,
  { pieces, prepared }: Taken,
  before: Before,
): Promise<Decision> => {
  const { desk } = deps
  const verdicts = await judgeAhead(deps, pieces, before)
  if (before.ahead === null) await before.settled
  try {
    const deciding = { prepared: await prepared, verdicts, yieldMs: besideMs }
    const decided = await decideAhead(desk, deciding, before.ahead ?? nothingAhead)
    return { verdicts, decided }
  } catch (error) {
    if (isReplayable(error) || isAway(error)) return { verdicts, decided: null }
    throw error
  }
}

/** They hold however often the batch is tried: what is a duplicate hangs on the log alone. */
const judgeAhead = async (
  deps: BatchDeps,
  all: readonly Piece[],
  { settled }: Before,
): Promise<Verdicts> => {
  const failures = openFailures(deps.limits.replaysMax)
  for (let tries = 0; ; tries++) {
    const pieces = all.filter(({ lane }) => !lane.lost)
    try {
      const verdicts = await judge(pieces, () => settled)
      for (const verdict of verdicts.values()) verdict.accept()
      return verdicts
    } catch (error) {
      failures.note(await recover(deps, error, { tries, pieces }))
    }
  }
}

const settling = (deps: BatchDeps, taken: Taken, decision: Decision): Before => {
  const { desk } = deps
  const { decided } = decision
  const ahead = decided && aheadOf(decided)
  const settled = settle(deps, { ...taken, ...decision })
  settled.catch(() => undefined)
  desk.inHand = ahead === null ? [] : [ahead.users]
  return { ahead, settled }
}

/** A few calls right after a batch are likely followed by more; after a pause they are not kept waiting. */
const linger = async (queue: LaneQueue, limits: ProjectLimits): Promise<void> => {
  if (queue.size() > 0 && queue.size() < limits.batchCallsMax) await sleep(limits.gatherMs)
}

/** Whether it was written as it was decided first. */
const settle = async (deps: BatchDeps, batch: Taken & Decision): Promise<boolean> => {
  const { desk, limits, logger } = deps
  const { pieces: all, verdicts } = batch
  const began = performance.now()
  let fresh = false
  const failures = openFailures(limits.replaysMax)
  for (let tries = 0; ; tries++) {
    const pieces = all.filter(({ lane }) => !lane.lost)
    if (pieces.length === 0) return false
    const isFirst = tries === 0 && pieces.length === all.length
    const decided = isFirst ? batch.decided : null
    try {
      const prepared = await (isFirst ? batch.prepared : prepareBatch(desk, pieces, { fresh }))
      const moves = movesOf(pieces)
      const own = verdictsOf(pieces, verdicts)
      const written = await write(deps, { prepared, verdicts: own, decided, moves })
      remember(desk, moves, written)
      if (written !== null && desk.sightings !== null)
        rememberSightings(desk.sightings, written.metered)
      tellDuplicates(deps.debugger, pieces, own)
      if (written !== null) logBatch(deps, { pieces, verdicts: own, written, began, tries })
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
}

/** Says why the batch is tried again, or throws what no further try can mend. */
const recover = async (
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
