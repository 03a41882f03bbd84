// A run: waits until the projector has passed the barrier, then syncs each shard that changed.
import { setTimeout as sleep } from 'node:timers/promises'
import { settleAccounts } from './accounts.ts'
import { catchUp } from './catch-up.ts'
import { type Run, syncShards } from './chunk.ts'
import type { Relay } from './relay.ts'
import { endRun, forgetRuns, openShards, projectedCalls } from './run-store.ts'
import { saveSizes } from './size-store.ts'
import type { Term } from './term.ts'

/** Ends the run once every message it decided is in topic `outbound`. */
export const syncRun = async (term: Term, relay: Relay, run: Run): Promise<void> => {
  const { clock, logger, limits } = term.deps
  const began = performance.now()
  await reached(term, run)
  const waitedMs = Math.round(performance.now() - began)
  await settleAccounts(term, run)
  await catchUp(term, relay, run)
  const shards = await openShards(term.seat, {
    runId: run.id,
    now: clock(),
    shards: limits.shards,
    audienceIds: [...run.audiences.keys()],
  })
  const { emitted, chunks } = await syncInParallel(term, relay, { run, shards })
  await relay.drain()
  await endRun(term.seat, {
    id: run.id,
    epoch: term.epoch,
    at: clock(),
    state: 'finished',
    reason: null,
  })
  await saveSizes(term.seat, {
    runId: run.id,
    at: clock(),
    audienceIds: [...run.audiences.keys()],
    kept: limits.sizesKept,
  })
  if (run.id % 100 === 0) await forgetRuns(term.seat, run.id - limits.runsKept)
  const durationMs = Math.round(performance.now() - began)
  const audiences = run.audiences.size
  const line = { runId: run.id, audiences, shards: shards.length, chunks, emitted }
  logger.info({ ...line, waitedMs, durationMs }, 'sync.finished')
}

/** Only `calls` is awaited: a long import must not hold back every audience. */
const reached = async (term: Term, run: Run): Promise<void> => {
  const { clock, logger, limits, pool } = term.deps
  let warnAt = clock().getTime() + limits.barrierWarnMs
  for (let pause = 2; ; pause = Math.min(pause * 2, limits.pollMs)) {
    // Asked first: what is said of then must not be older.
    const now = clock().getTime()
    const lags = lagging(run.barrier, await projectedCalls(pool))
    if (lags.length === 0) return
    if (now > warnAt) {
      warnAt = now + limits.barrierWarnMs
      logger.warn({ runId: run.id, lags }, 'sync.delayed')
    }
    await sleep(pause, undefined, { signal: term.signal })
  }
}

type Lag = { readonly partition: number; readonly lag: number }

const lagging = (
  barrier: readonly bigint[],
  positions: ReadonlyMap<number, bigint>,
): readonly Lag[] =>
  barrier.flatMap((end, partition) => {
    const lag = Number(end - (positions.get(partition) ?? 0n))
    return lag > 0 ? [{ partition, lag }] : []
  })

type Work = { readonly run: Run; readonly shards: readonly number[] }

const syncInParallel = async (term: Term, relay: Relay, { run, shards }: Work) => {
  const { limits } = term.deps
  const left = [...shards]
  const failed = new AbortController()
  const whole = { ...term, signal: AbortSignal.any([term.signal, failed.signal]) }
  const total = { emitted: 0, chunks: 0 }
  let ahead = 0
  const work = async () => {
    while (left.length > 0)
      await syncShards(
        whole,
        { run, shards: left.splice(0, limits.shardsOfStep) },
        async (step) => {
          total.emitted += step.messages.length
          total.chunks += step.chunks
          relay.hand(step.messages)
          ahead += step.messages.length
          if (ahead < limits.appendRowsMax) return
          // The outbox stays short: whoever fills it helps to empty it.
          ahead = 0
          await relay.forward()
        },
      )
  }
  const workers = Array.from({ length: limits.stepsAtOnce }, () =>
    work().catch((error: unknown) => {
      failed.abort(error)
      throw error
    }),
  )
  // All must have come to rest before the term may end.
  for (const result of await Promise.allSettled(workers))
    if (result.status === 'rejected') throw failed.signal.reason
  return total
}
