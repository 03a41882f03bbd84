// Folding after the live projector: never beyond it, and only while it does not fall behind.
import { setTimeout as sleep } from 'node:timers/promises'
import { distance, type RebuildDeps, topics, type Vector, vectorOf } from './deps.ts'
import type { Fold } from './fold.ts'
import { readPositions } from './store.ts'

/** Until it is near to live. */
export const follow = async (deps: RebuildDeps, fold: Fold, signal: AbortSignal): Promise<void> => {
  const pace = pacer(deps, fold, signal)
  for (;;) {
    const live = await readPositions(deps.pool)
    const left = distance(fold.positions(), live)
    deps.meter.left = left
    if (left <= deps.limits.nearCallsMax && isKnown(fold, live)) return
    await fold.foldUntil(live, { signal, pace })
  }
}

/** A partition that was not looked at yet has a position all the same. */
const isKnown = (fold: Fold, live: Vector): boolean => {
  const positions = fold.positions()
  return [...live.keys()].every((place) => positions.has(place))
}

/** Rests while live has much before it: a rebuild has time. */
const pacer = ({ pool, history, limits, meter }: RebuildDeps, fold: Fold, signal: AbortSignal) => {
  let looked = performance.now()
  return async (): Promise<void> => {
    while (performance.now() - looked >= limits.liveLookMs) {
      signal.throwIfAborted()
      const live = await readPositions(pool)
      meter.left = distance(fold.positions(), live)
      const lag = distance(live, await ends(history))
      looked = performance.now()
      if (lag <= limits.liveLagMax) return
      await sleep(limits.liveLookMs, undefined, { signal })
    }
  }
}

const ends = async (history: RebuildDeps['history']): Promise<Vector> => {
  const all = await Promise.all(
    topics.map(async (topic) =>
      (await history.bounds(topic)).map(({ end }, partition) => ({ topic, partition, next: end })),
    ),
  )
  return vectorOf(all.flat())
}
