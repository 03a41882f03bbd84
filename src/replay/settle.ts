// Ends a replay once nothing of it is appended any more, and nothing of it is on its way.
import type { ReplayDeps } from './deps.ts'
import { forgetDuplicates } from './duplicates.ts'
import { cutReplay, type Replay, settleReplay } from './store.ts'

/** When this process first knew that a cancelled replay was cut, by its id. */
export type Cuts = Map<number, number>

export const settle = async (deps: ReplayDeps, replay: Replay, cuts: Cuts): Promise<void> => {
  const { pool, clock, logger } = deps
  const { id, state, spans } = replay
  if (state === 'cancelled') {
    if (!(await isCutKnown(deps, replay, cuts))) return
  } else if (state !== 'draining') return
  const isSettled = await pool.transaction(async (tx) => {
    if (!(await settleReplay(tx, id, clock()))) return false
    // With it, or a crash in between would leave them for ever.
    await forgetDuplicates(tx, { id, spans: spans ?? [] })
    return true
  })
  if (!isSettled) return
  cuts.delete(id)
  logger.info({ replayId: id, state }, 'replay.settled')
}

/**
 * Delivery gives up all there is for the destination as long as it has not looked where the topic ended:
 * another replay may begin only when everybody has.
 */
const isCutKnown = async (deps: ReplayDeps, { id, cut }: Replay, cuts: Cuts): Promise<boolean> => {
  const { pool, source, clock, limits } = deps
  if (!cut) {
    const ends = (await source.bounds('outbound.replay')).map(({ end }) => end)
    await cutReplay(pool, id, ends)
  }
  const now = clock().getTime()
  const since = cuts.get(id) ?? now
  cuts.set(id, since)
  return now - since >= limits.cutKnownMs
}
