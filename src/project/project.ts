// The project stage: follows `calls` and `calls.import` and keeps users and memberships in Postgres.
import type { Logger } from 'pino'
import { loadPlan } from '../audience/plan.ts'
import { type Debugger, unwatched } from '../debugger/debugger.ts'
import type { Live } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import { nobodySuppressed, type Suppressions } from '../domain/suppression.ts'
import type { Codec, History, Source } from '../log/log.ts'
import { holdMembership } from '../membership.ts'
import type { Pool } from '../postgres/sql.ts'
import type { Clock, Running } from '../running.ts'
import { projectBatches } from './batches.ts'
import { boundedMap } from './bounded-map.ts'
import { runBuilds } from './builds.ts'
import { type Desk, nobodyInHand } from './desk.ts'
import { gainLane } from './lane.ts'
import { type Lane, laneQueue } from './lanes.ts'
import { type ProjectLimits, projectLimits } from './limits.ts'
import { keySupply } from './store.ts'
import { openTextCache } from './text-cache.ts'
import { turns } from './turns.ts'
import { foldUsageForever } from './usage-fold.ts'
import { loadUsageKey } from './usage-store.ts'
import { openUserCache } from './user-cache.ts'

export { projectLimits } from './limits.ts'

type ProjectDeps = {
  readonly source: Source
  /** Where audiences' history is read; the source when absent. */
  readonly history?: History
  readonly codecs: { readonly call: Codec<Message> }
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  /** Told of duplicates; nobody watches when absent. */
  readonly debugger?: Debugger
  /** Nobody is suppressed when absent. */
  readonly suppressions?: Suppressions
  readonly limits?: Partial<ProjectLimits>
}

export const startProject = (deps: ProjectDeps): Running => {
  const stopping = new AbortController()
  const done = serve(deps, stopping)
  done.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return done
    },
    done,
  }
}

const serve = async (deps: ProjectDeps, stopping: AbortController): Promise<void> => {
  const { source, pool, logger } = deps
  const limits = { ...projectLimits, ...deps.limits }
  const desk = await openDesk(pool, limits, deps.suppressions)
  const queue = laneQueue({
    callsMax: limits.batchCallsMax,
    queueCallsMax: limits.queueCallsMax,
  })
  const lanes = new Map<string, Lane>()
  const signal = stopping.signal
  const shared = { ...deps, limits, turns: turns(), stopping: signal }
  const laneDeps = { ...shared, codec: deps.codecs.call, queue }
  const group = {
    name: 'project',
    topics: ['calls', 'calls.import'],
    bytesMax: limits.fetchBytesMax,
  } as const
  const membership = holdMembership(() =>
    source.join(group, (lease) => gainLane(laneDeps, lanes, lease)),
  )
  const work = [
    projectBatches({
      ...{ desk, queue, limits, logger },
      debugger: deps.debugger ?? unwatched,
      turns: shared.turns,
      fenced: membership.fenced,
      stopping: signal,
    }),
    membership.done,
    runBuilds(shared),
    foldUsageForever(shared, signal),
  ]
  // Whatever ends first, by itself or because it was asked to, ends the rest.
  const ended = Promise.race([
    ...work,
    new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    }),
  ])
  const failure = await ended.then(
    () => null,
    (error: unknown) => ({ error }),
  )
  stopping.abort()
  queue.close()
  await Promise.allSettled([work[0], work[2], work[3]])
  const results = await Promise.allSettled([membership.stop(), ...work])
  if (failure !== null) throw failure.error
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

export const openDesk = async (
  pool: Pool,
  limits: ProjectLimits,
  suppressions: Suppressions = nobodySuppressed,
): Promise<Desk> => ({
  pool,
  users: openUserCache(limits.userCacheBytesMax),
  identities: openTextCache(limits.identityCacheBytesMax),
  merged: boundedMap<number, number>({
    bytesMax: limits.identityCacheBytesMax >> 4,
    bytesOf: () => mergedBytes,
  }),
  keys: keySupply(pool),
  sightings: openTextCache(limits.sightingCacheBytesMax),
  usageKey: await loadUsageKey(pool),
  suppressions,
  yieldMs: limits.yieldMs,
  plan: await loadPlan(pool),
  folded: 0,
  lockFirst: 0,
  ...nobodyInHand,
})

/** A key of another on the heap. */
const mergedBytes = 120
