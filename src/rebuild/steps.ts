// One rebuild, step by step; each step's end is stored, and whoever takes it over goes on from there.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../postgres/sql.ts'
import { begin } from './begin.ts'
import type { RebuildDeps } from './deps.ts'
import { type Fold, openFold } from './fold.ts'
import { follow } from './follow.ts'
import { countEnd } from './meter.ts'
import { liveSchema, schemaOf } from './schema.ts'
import {
  findOpen,
  type Rebuild,
  readPositions,
  saveComparison,
  tellWaiting,
  turnRebuild,
} from './store.ts'
import { prepareSwap, trySwap } from './swap.ts'
import { verify } from './verify.ts'

type Term = {
  /** The connection whose session holds the lock. */
  readonly seat: Sql
  readonly stopping: AbortSignal
}

/** Returns when there is nothing to do for now: it is over, waits, or the stage stops. */
export const workOn = async (deps: RebuildDeps, open: Rebuild, term: Term): Promise<void> => {
  const { logger } = deps
  if (open.state === 'requested') {
    if ((await begin(deps, open)) === 'waits') return
    logger.info({ rebuildId: open.id }, 'rebuild.begun')
  }
  const watch = watchOver(deps, open, term)
  const pool = deps.openPool(
    {
      search_path: `${schemaOf(open.id)},${await liveSchema(deps.pool)}`,
      // What a crash of the server takes away is folded again: positions go with it.
      synchronous_commit: 'off',
    },
    deps.limits.connectionsMax,
  )
  try {
    const fold = await openFold(deps, pool)
    await stepOn(deps, { open, fold, signal: watch.signal, seat: term.seat })
  } catch (error) {
    if (!watch.signal.aborted) throw error
  } finally {
    watch.end()
    await pool.close()
  }
}

type Step = {
  readonly open: Rebuild
  readonly fold: Fold
  readonly signal: AbortSignal
  readonly seat: Sql
}

const stepOn = async (deps: RebuildDeps, step: Step): Promise<void> => {
  for (;;) {
    const now = await findOpen(step.seat)
    if (now === null || now.id !== step.open.id) return
    deps.meter.state = now.state
    switch (now.state) {
      case 'requested':
        return
      case 'differs':
        await keepUp(deps, step)
        break
      case 'folding':
        await follow(deps, step.fold, step.signal)
        await turnRebuild(step.seat, { id: now.id, from: 'folding', to: 'comparing' })
        break
      case 'comparing':
        await compare(deps, now, step)
        break
      case 'swapping':
        await swap(deps, now, step)
        break
    }
  }
}

/** To where live is by now, without a rest: it is near. */
const catchUp = async (
  deps: RebuildDeps,
  { fold, signal }: Pick<Step, 'fold' | 'signal'>,
): Promise<void> => {
  await follow(deps, fold, signal)
  const live = await readPositions(deps.pool)
  await fold.foldUntil(live, { signal, pace: async () => undefined })
}

/** While it waits to be accepted: who is erased meanwhile is erased there, too. */
const keepUp = async (deps: RebuildDeps, { fold, signal }: Step): Promise<void> => {
  await catchUp(deps, { fold, signal })
  await sleep(deps.limits.pollMs, undefined, { signal })
}

const compare = async (deps: RebuildDeps, now: Rebuild, step: Step): Promise<void> => {
  const { id } = now
  await follow(deps, step.fold, step.signal)
  const found = await verify(deps, step.fold, step.signal)
  await saveComparison(step.seat, id, found)
  const { users, differing } = found
  deps.logger.info({ rebuildId: id, users, differing }, 'rebuild.compared')
  const turn = { id, from: 'comparing' } as const
  if (now.verifyOnly) {
    const isOver = await turnRebuild(step.seat, { ...turn, to: 'verified', at: deps.clock() })
    if (isOver) countEnd(deps.meter, 'verified')
  } else if (differing > 0 && !now.acceptsDifferences)
    await turnRebuild(step.seat, { ...turn, to: 'differs' })
  else await turnRebuild(step.seat, { ...turn, to: 'swapping' })
}

const swap = async (deps: RebuildDeps, now: Rebuild, step: Step): Promise<void> => {
  const { fold, signal } = step
  for (let isPrepared = false; ; ) {
    signal.throwIfAborted()
    await follow(deps, fold, signal)
    if (!isPrepared) await prepareSwap(deps, { rebuild: now, fold, signal })
    isPrepared = true
    // What came while it was prepared: the less is left, the shorter live stands still.
    await catchUp(deps, { fold, signal })
    const began = performance.now()
    const tried = await trySwap(deps, { rebuild: now, fold, signal })
    if (tried === 'over') return
    if (tried === 'swapped') {
      const stillMs = Math.round(performance.now() - began)
      deps.meter.standstillMs = stillMs
      countEnd(deps.meter, 'swapped')
      deps.logger.info({ rebuildId: now.id, stillMs }, 'rebuild.swapped')
      return
    }
    deps.meter.swapsPutOff += 1
    await tellWaiting(step.seat, now.id, tried.waitsFor)
    await sleep(deps.limits.swapRetryMs, undefined, { signal })
  }
}

/** Aborts when the stage stops, the rebuild is cancelled, or the lock is lost. */
const watchOver = ({ limits }: RebuildDeps, { id }: Rebuild, { seat, stopping }: Term) => {
  const ending = new AbortController()
  const over = new AbortController()
  const watch = async () => {
    for (;;) {
      await sleep(limits.pollMs, undefined, { signal: ending.signal })
      if ((await findOpen(seat))?.id !== id) return
    }
  }
  watch().then(
    () => over.abort(new Error('the rebuild is over')),
    (error: unknown) => over.abort(error),
  )
  return { signal: AbortSignal.any([stopping, over.signal]), end: () => ending.abort() }
}
