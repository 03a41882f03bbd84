// A destination that joins an audience which others know already: it is told of every member first.
import type { Run } from './chunk.ts'
import { tellPage } from './page.ts'
import { moveJoined, readJoined } from './page-store.ts'
import type { Relay } from './relay.ts'
import type { Term } from './term.ts'

/**
 * Before the run's own changes, so that what a destination hears of one user stands in order. Members
 * that changed since the last sync are told of as they were then, and with the changes as they are now.
 */
export const catchUp = async (term: Term, relay: Relay, run: Run): Promise<void> => {
  for (const joined of await readJoined(term.seat, [...run.audiences.keys()])) {
    const audience = run.audiences.get(joined.audienceId)
    if (audience === undefined || !audience.destinationIds.includes(joined.destinationId)) continue
    for (let after: number | null = joined.after; after !== null; ) {
      after = await tellPage(term, {
        runId: run.id,
        audience,
        destinationIds: [joined.destinationId],
        after,
        member: true,
        told: (tx, _, last) => moveJoined(tx, joined, last),
      })
      await relay.drain()
    }
    const { audienceId, destinationId } = joined
    term.deps.logger.info({ runId: run.id, audienceId, destinationId }, 'sync.caught_up')
  }
}
