// Taking back what a deleted audience had said, where that was asked for.
import { tellPage } from './page.ts'
import { endRetraction, forgetMembers, readRetractions } from './page-store.ts'
import type { Relay } from './relay.ts'
import type { Term } from './term.ts'

/** Messages of no run carry this. */
const noRun = 0

export const retract = async (term: Term, relay: Relay): Promise<void> => {
  for (const { destinationIds, audienceId: id, ...gone } of await readRetractions(term.seat)) {
    const audience = { ...gone, id, name: gone.key, version: 'retracted' }
    for (let isDone = false; !isDone; ) {
      const last = await tellPage(term, {
        runId: noRun,
        audience,
        destinationIds,
        // Who was told of is gone from there: each page starts anew.
        after: 0,
        member: false,
        told: (tx, members, next) =>
          next === null ? endRetraction(tx, id) : forgetMembers(tx, id, members),
      })
      isDone = last === null
      await relay.drain()
    }
    term.deps.logger.info({ audienceId: id }, 'audience.retracted')
  }
}
