// Erases everything beside the profile, of all requests that have come so far, in one reading of each store.
import { isBlocked } from '../domain/identity.ts'
import type { Pool } from '../postgres/sql.ts'
import type { EraseDeps } from './deps.ts'
import { type Forgotten, forget } from './forgotten.ts'
import { countListed, eraseBodies, eraseDead, listParked, takeListed } from './parked-store.ts'
import type { OpenRequest } from './request-store.ts'
import { eraseAttempts, eraseDebugger, eraseOutbox, eraseReplays } from './trace-store.ts'

/** What was erased where. */
export type Swept = {
  readonly [store in
    | 'parked'
    | 'bodies'
    | 'deadLetters'
    | 'attempts'
    | 'outbox'
    | 'debugger'
    | 'replays']?: number
}

type Ids = { readonly kind: number; readonly value: string; readonly workspaceId: number }

/** `null` when parked messages still have to be given up by those who deliver. */
export const sweep = async (
  deps: EraseDeps,
  requests: readonly OpenRequest[],
): Promise<Swept | null> => {
  const { pool } = deps
  const total = {
    ...{ parked: 0, bodies: 0, deadLetters: 0, attempts: 0 },
    ...{ outbox: 0, debugger: 0, replays: 0 },
  }
  const all = await loadForgotten(deps, requests)
  for (const forgotten of all) {
    total.outbox += await eraseOutbox(pool, forgotten)
    total.parked += await listParked(pool, forgotten)
  }
  if (!(await areGivenUp(deps))) return null
  for (const forgotten of all) {
    total.bodies += await eraseBodies(pool, forgotten)
    total.deadLetters += await eraseDead(pool, forgotten)
    total.attempts += await eraseAttempts(pool, forgotten)
    total.debugger += await eraseDebugger(pool, forgotten)
    total.replays += await eraseReplays(pool, forgotten)
  }
  return total
}

/**
 * What is parked of users who are suppressed and not erased: a body does not say which visitor it is of, so that
 * no try could tell. Its owners give it up in their own time. Who is heard again meanwhile keeps theirs.
 */
export const sweepSuppressed = async (
  deps: EraseDeps,
  requests: readonly OpenRequest[],
): Promise<Swept> => {
  for (const forgotten of await loadForgotten(deps, requests))
    await listParked(deps.pool, forgotten)
  return {}
}

/** By workspace. */
const loadForgotten = async (
  { pool, live }: EraseDeps,
  requests: readonly OpenRequest[],
): Promise<readonly Forgotten[]> => {
  const ids = await loadIds(pool, requests)
  const { sources, destinations } = live.now()
  return [...Map.groupBy(ids, (id) => id.workspaceId)].map(([workspaceId, known]) => {
    const inWorkspace = (each: { readonly workspaceId: number }) => each.workspaceId === workspaceId
    return forget({
      workspaceId,
      userIds: valuesOf(known, 0),
      anonymousIds: valuesOf(known, 1),
      sourceIds: [...sources.values()].filter(inWorkspace).map(({ id }) => id),
      destinationIds: [...destinations.values()].filter(inWorkspace).map(({ id }) => id),
    })
  })
}

const areGivenUp = async ({ pool, clock, limits }: EraseDeps): Promise<boolean> => {
  if ((await countListed(pool)) === 0) return true
  const aliveSince = new Date(clock().getTime() - limits.aliveMs)
  const taken = await pool.transaction((tx) => takeListed(tx, aliveSince))
  return taken === 'taken' && (await countListed(pool)) === 0
}

/** Without those that name nobody: what has one of them is not of one user. */
const loadIds = async (pool: Pool, requests: readonly OpenRequest[]): Promise<readonly Ids[]> => {
  const { rows } = await pool.query<Ids>(
    `select r.workspace_id as "workspaceId", t.kind, t.value
       from (select request_id, kind, value, hash from deletion_subject where value is not null
              union all select request_id, kind, value, null from deletion_identity) t
       join deletion_request r on r.id = t.request_id
      where r.id = any($1) and (r.kind <> 'suppress_only'
        or exists (select from suppression s where s.hash = t.hash and s.suppressed))`,
    [requests.map(({ id }) => id)],
  )
  return rows.filter(({ value }) => !isBlocked(value))
}

const valuesOf = (ids: readonly Ids[], wanted: number): ReadonlySet<string> =>
  new Set(ids.filter(({ kind }) => kind === wanted).map(({ value }) => value))
