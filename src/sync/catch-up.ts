// A destination that joins an audience which others know already, or was off: it is told of every member first,
// and before that of those it was told are in it and who left meanwhile.
import type { Run, RunAudience } from './chunk.ts'
import { takeLeavers } from './leaver-store.ts'
import { tellPage, tellTaken } from './page.ts'
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
    await tellLeavers(term, relay, { run, audience, destinationId: joined.destinationId })
    for (let after: number | null = joined.after; after !== null; ) {
      const from: number = after
      after = await tellPage(term, {
        runId: run.id,
        audience,
        destinationIds: [joined.destinationId],
        after: from,
        member: true,
        told: (tx, _, last) => moveJoined(tx, { ...joined, after: from }, last),
      })
      await relay.drain()
    }
    const { audienceId, destinationId } = joined
    term.deps.logger.info({ runId: run.id, audienceId, destinationId }, 'sync.caught_up')
  }
}

type Leaving = {
  readonly run: Run
  readonly audience: RunAudience
  readonly destinationId: number
}

const tellLeavers = async (
  term: Term,
  relay: Relay,
  { run, audience, destinationId }: Leaving,
): Promise<void> => {
  const about = { runId: run.id, audience, destinationIds: [destinationId], member: false }
  const pair = { audienceId: audience.id, destinationId }
  for (let told = 1; told > 0; ) {
    told = await tellTaken(term, about, (tx, limit) => takeLeavers(tx, { ...pair, limit }))
    if (told > 0) await relay.drain()
  }
}
