// The projector's loop: gathers calls of all partitions into one transaction after another.
import { setTimeout as sleep } from 'node:timers/promises'
import { isAway } from '../postgres/away.ts'
import { isReplayable } from '../postgres/sql.ts'
import { type Ahead, aheadOf, decideAhead, nothingAhead } from './decide.ts'
import { openFailures } from './failures.ts'
import { judge, type Verdicts } from './judge.ts'
import type { LaneQueue, Piece } from './lanes.ts'
import type { ProjectLimits } from './limits.ts'
import { besideMs, prepareBatch } from './prepare.ts'
import { forget } from './remember.ts'
import { type BatchDeps, callsIn, type Decision, recover, settle, type Taken } from './settle.ts'

/** Of the batch before, while it is being written. */
type Before = {
  /** `null` while nobody knows what it comes to: the next one has to wait for it. */
  readonly ahead: Ahead | null
  /** Whether it was written at the first try. */
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
  try {
    for (;;) {
      // Nothing may come any more, and then what fails is heard all the same.
      const batch = await Promise.race([taken, before.settled.then(() => taken)])
      if (batch === null) break
      let next = isBusy() ? take(deps) : null
      const decision = await decideNext(deps, batch, before)
      const asDecided = await before.settled
      before = settling(deps, batch, asDecided ? decision : voided(deps, decision))
      next ??= isBusy() ? take(deps) : null
      if (next === null) {
        await before.settled
        before = nothingBefore
        await linger(queue, limits)
      }
      taken = next ?? take(deps)
    }
  } finally {
    await before.settled
  }
}

const take = async ({ desk, queue }: BatchDeps): Promise<Taken | null> => {
  const pieces = await queue.take()
  if (pieces.length === 0) return null
  const prepared = prepareBatch(desk, pieces, { fresh: false })
  prepared.catch(() => undefined)
  return { pieces, prepared }
}

/** What it was decided upon has not come to be. */
const voided = ({ desk }: BatchDeps, { verdicts, decided }: Decision): Decision => {
  if (decided !== null) forget(desk, decided)
  return { verdicts, decided: null }
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
    // Its transaction meets the same, tells of it and waits.
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
      const reason = await recover(deps, error, { tries, pieces })
      deps.logger.warn({ reason, tries, calls: callsIn(pieces) }, 'batch.replayed')
      failures.note(reason)
    }
  }
}

const settling = (deps: BatchDeps, taken: Taken, decision: Decision): Before => {
  const { desk } = deps
  const { decided } = decision
  const ahead = decided && aheadOf(decided)
  const settled = settle(deps, { ...taken, ...decision })
  settled.catch(() => undefined)
  desk.inHand = decided === null ? [] : [ahead?.users ?? decided.held.users]
  return { ahead, settled }
}

/** A few calls right after a batch are likely followed by more; after a pause they are not kept waiting. */
const linger = async (queue: LaneQueue, limits: ProjectLimits): Promise<void> => {
  if (queue.size() > 0 && queue.size() < limits.batchCallsMax) await sleep(limits.gatherMs)
}
