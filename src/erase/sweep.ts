// Erases everything beside the profile, of all requests that have come so far, in one reading of each store.
import type { Pool } from '../postgres/sql.ts'
import type { EraseDeps } from './deps.ts'
import { type Forgotten, forget } from './forgotten.ts'
import { countListed, eraseBodies, eraseDead, listParked, takeListed } from './parked-store.ts'
import type { OpenRequest } from './request-store.ts'
import { eraseAttempts, eraseDebugger, eraseOutbox, eraseReplays } from './trace-store.ts'

/** What was erased where. */
export type Swept = { readonly [store in (typeof stores)[number]]: number }

export const stores = [
  'parked',
  'bodies',
  'deadLetters',
  'attempts',
  'outbox',
  'debugger',
  'replays',
] as const

type Ids = { readonly kind: number; readonly value: string; readonly workspaceId: number }

/** `null` when parked messages still have to be given up by those who deliver. */
export const sweep = async (
  deps: EraseDeps,
  requests: readonly OpenRequest[],
): Promise<Swept | null> => {
  const { pool, live } = deps
  const ids = await loadIds(pool, requests)
  const total = {
    ...{ parked: 0, bodies: 0, deadLetters: 0, attempts: 0 },
    ...{ outbox: 0, debugger: 0, replays: 0 },
  }
  const all: Forgotten[] = []
  for (const [workspaceId, known] of Map.groupBy(ids, (id) => id.workspaceId)) {
    const { sources, destinations } = live.now()
    const inWorkspace = (each: { readonly workspaceId: number }) => each.workspaceId === workspaceId
    all.push(
      forget({
        workspaceId,
        userIds: valuesOf(known, 0),
        anonymousIds: valuesOf(known, 1),
        sourceIds: [...sources.values()].filter(inWorkspace).map(({ id }) => id),
        destinationIds: [...destinations.values()].filter(inWorkspace).map(({ id }) => id),
      }),
    )
  }
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

const areGivenUp = async ({ pool, clock, limits }: EraseDeps): Promise<boolean> => {
  if ((await countListed(pool)) === 0) return true
  const aliveSince = new Date(clock().getTime() - limits.aliveMs)
  const taken = await pool.transaction((tx) => takeListed(tx, aliveSince))
  return taken === 'taken' && (await countListed(pool)) === 0
}

const loadIds = async (pool: Pool, requests: readonly OpenRequest[]): Promise<readonly Ids[]> => {
  const { rows } = await pool.query<Ids>(
    `select r.workspace_id as "workspaceId", t.kind, t.value
       from (select request_id, kind, value from deletion_subject where value is not null
              union select request_id, kind, value from deletion_identity) t
       join deletion_request r on r.id = t.request_id
      where r.id = any($1)`,
    [requests.map(({ id }) => id)],
  )
  return rows
}

const valuesOf = (ids: readonly Ids[], wanted: number): ReadonlySet<string> =>
  new Set(ids.filter(({ kind }) => kind === wanted).map(({ value }) => value))
