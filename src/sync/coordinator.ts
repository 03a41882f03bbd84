// The coordinator: decides which runs there are to do, from requests, schedules and interrupted runs.

import type { Bell } from '../bell.ts'
import type { Configuration } from '../domain/configuration.ts'
import { type Candidate, isDue, nextSyncAt } from '../domain/schedule.ts'
import { keepAccountsShort } from './accounts.ts'
import { gatherChanges } from './change-store.ts'
import type { Run, RunAudience } from './chunk.ts'
import type { Relay } from './relay.ts'
import { retract } from './retract.ts'
import { syncRun } from './run.ts'
import {
  type AudienceRow,
  endRun,
  openRun,
  type PendingRun,
  pendingRuns,
  readAudiences,
} from './run-store.ts'
import { type Term, termLost } from './term.ts'

type Coordinator = { readonly term: Term; readonly relay: Relay; readonly bell: Bell }

/** Until the term ends: what is pending, then what is due, then a short sleep. */
export const coordinate = async ({ term, relay, bell }: Coordinator): Promise<void> => {
  const waiting = new Map<number, number>()
  for (;;) {
    term.signal.throwIfAborted()
    // Notices of deletions come into the outbox at any time.
    await relay.drain()
    await keepAccountsShort(term)
    await gatherChanges(term.seat, term.deps.limits.membershipChangesMax)
    for (const pending of await pendingRuns(term.seat, term.deps.limits.requestsMax)) {
      const run = await takeUp(term, pending, waiting)
      if (run) await syncRun(term, relay, run)
    }
    await retract(term, relay)
    const due = await openDue(term)
    if (due) await syncRun(term, relay, due)
    else await bell.wait(term.deps.limits.pollMs, term.signal)
  }
}

type Ready = { readonly audience: RunAudience; readonly candidate: Candidate }

/** The audiences of the snapshot whose membership is complete. */
const readReady = async (term: Term): Promise<ReadonlyMap<number, Ready>> => {
  const configuration = term.deps.live.now()
  const rows = await readAudiences(term.seat)
  return new Map(
    rows.flatMap((row) => {
      const ready = readyOf(configuration, row)
      return ready ? [[row.audienceId, ready]] : []
    }),
  )
}

const readyOf = (configuration: Configuration, row: AudienceRow): Ready | null => {
  const audience = configuration.audiences.get(row.audienceId)
  if (!audience || row.version === null) return null
  const { id, kind, workspaceId, key, name, entryEvents, syncEveryMs } = audience
  const isOn = (destinationId: number) => configuration.destinations.get(destinationId)?.enabled
  const destinationIds = audience.destinationIds.filter(isOn)
  const awayIds = audience.destinationIds.filter((it) => !isOn(it))
  const last =
    row.syncedVersion === null || row.slot === null || row.startedAt === null
      ? null
      : { version: row.syncedVersion, slot: row.slot, startedAt: row.startedAt }
  return {
    audience: {
      ...{ id, kind, workspaceId, key, name, entryEvents, destinationIds, awayIds },
      version: row.version,
    },
    candidate: { id, syncEveryMs, version: row.version, last },
  }
}

const openDue = async (term: Term): Promise<Run | null> => {
  const now = term.deps.clock()
  const ready = [...(await readReady(term)).values()]
  // Without a destination that is on there is nobody to tell: the changes wait until there is one.
  const due = ready.filter(
    ({ audience, candidate }) => audience.destinationIds.length > 0 && isDue(candidate, now),
  )
  return due.length === 0 ? null : open(term, null, due)
}

/** `null` while an audience of the request is not ready. */
const takeUp = async (
  term: Term,
  pending: PendingRun,
  waiting: Map<number, number>,
): Promise<Run | null> => {
  const { live, limits, clock } = term.deps
  const { audiences } = live.now()
  const ready = await readReady(term)
  const unknown = pending.audienceIds.filter((id) => !audiences.has(id))
  if (pending.state === 'running')
    return runOf(pending.id, pending.barrier ?? [], pick(ready, pending.audienceIds))
  const since = waiting.get(pending.id) ?? performance.now()
  waiting.set(pending.id, since)
  const waited = performance.now() - since
  if (unknown.length > 0 && waited < limits.unknownAudienceMs) return null
  if (unknown.length === pending.audienceIds.length) {
    waiting.delete(pending.id)
    const [id, epoch, at] = [pending.id, term.epoch, clock()]
    await endRun(term.seat, { id, epoch, at, state: 'failed', reason: 'audience_unknown' })
    return null
  }
  const known = pending.audienceIds.filter((id) => audiences.has(id))
  const picked = pick(ready, known)
  if (picked.length < known.length) return null
  waiting.delete(pending.id)
  return open(term, pending.id, picked)
}

const pick = (ready: ReadonlyMap<number, Ready>, ids: readonly number[]): readonly Ready[] =>
  ids.flatMap((id) => ready.get(id) ?? [])

const open = async (term: Term, id: number | null, ready: readonly Ready[]): Promise<Run> => {
  const { clock, source } = term.deps
  const startedAt = clock()
  const barrier = (await source.bounds('calls')).map(({ end }) => end)
  const opened = await openRun(term.seat, {
    id,
    epoch: term.epoch,
    at: startedAt,
    barrier,
    slots: ready.map(({ audience, candidate }) => slotOf(audience, candidate, startedAt)),
    destinations: ready.flatMap(({ audience: { id, destinationIds } }) =>
      pairs(id, destinationIds),
    ),
    away: ready.flatMap(({ audience: { id, awayIds } }) => pairs(id, awayIds)),
  })
  if (opened === null) throw termLost()
  return runOf(opened, barrier, ready)
}

const pairs = (audienceId: number, destinationIds: readonly number[]) =>
  destinationIds.map((destinationId) => ({ audienceId, destinationId }))

const slotOf = ({ version }: RunAudience, candidate: Candidate, startedAt: Date) => {
  const { id: audienceId, syncEveryMs: everyMs } = candidate
  const slot = (candidate.last?.slot ?? 0) + 1
  return {
    audienceId,
    version,
    slot,
    nextSyncAt: nextSyncAt({ audienceId, slot, everyMs, startedAt }),
  }
}

const runOf = (id: number, barrier: readonly bigint[], ready: readonly Ready[]): Run => ({
  id,
  barrier,
  audiences: new Map(
    ready
      .filter(({ audience }) => audience.destinationIds.length > 0)
      .map(({ audience }) => [audience.id, audience]),
  ),
})
