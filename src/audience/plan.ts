// The plan: which leaves are folded for which events, and which audiences are evaluated from them.
import { type EventSpec, type Filter, parseCondition } from '../domain/condition/condition.ts'
import { type BoundCondition, bind, leafIdsOf, readsTraits } from '../domain/condition/evaluate.ts'
import { leavesOf } from '../domain/condition/leaf.ts'
import type { Window } from '../domain/condition/window.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

export type PlannedAudience = {
  readonly id: number
  readonly workspaceId: number
  readonly condition: BoundCondition
  readonly leafIds: readonly number[]
}

export type PlannedLeaf = {
  readonly id: number
  readonly workspaceId: number
  readonly buildId: number
  readonly event: string
  readonly where: Filter | null
  readonly window: Window | null
  readonly keep: number
  /** Those evaluated now; one still being built is not among them. */
  readonly audiences: readonly PlannedAudience[]
}

type WorkspacePlan = {
  /** By event name. */
  readonly leaves: ReadonlyMap<string, readonly PlannedLeaf[]>
  readonly audiences: readonly PlannedAudience[]
  readonly traitAudiences: readonly PlannedAudience[]
}

export type Plan = {
  readonly version: bigint
  readonly leaves: ReadonlyMap<number, PlannedLeaf>
  /** All, in whatever state. */
  readonly audienceIds: ReadonlySet<number>
  readonly workspaces: ReadonlyMap<number, WorkspacePlan>
}

type AudienceRow = {
  readonly audienceId: number
  readonly workspaceId: number
  readonly condition: JsonObject
  readonly evaluated: boolean
}

type LeafRow = {
  readonly id: number
  readonly workspaceId: number
  readonly hash: string
  readonly keep: number
  readonly buildId: number
}

export const planVersion = async (sql: Sql): Promise<bigint> => {
  const { rows } = await sql.query<{ version: bigint }>('select version from project_plan')
  return (rows[0] as { version: bigint }).version
}

/** One statement, so that its parts agree in every isolation level. */
export const loadPlan = async (sql: Sql): Promise<Plan> => {
  const { rows } = await sql.query<{
    version: bigint
    audiences: readonly AudienceRow[] | null
    leaves: readonly LeafRow[] | null
  }>(
    `select version,
       (select json_agg(json_build_object('audienceId', a.audience_id, 'workspaceId', a.workspace_id,
                 'condition', a.condition,
                 'evaluated', a.state = 'live' or b.phase = 'evaluating') order by a.audience_id)
          from audience_state a left join audience_build b on b.id = a.build_id) as audiences,
       (select json_agg(json_build_object('id', id, 'workspaceId', workspace_id, 'hash', hash,
                 'keep', keep, 'buildId', build_id) order by id)
          from leaf) as leaves
       from project_plan`,
  )
  const { version, audiences, leaves } = rows[0] as (typeof rows)[number]
  return planOf({ version, audiences: audiences ?? [], leaves: leaves ?? [] })
}

type Parts = {
  readonly version: bigint
  readonly audiences: readonly AudienceRow[]
  readonly leaves: readonly LeafRow[]
}

const planOf = ({ version, audiences, leaves }: Parts): Plan => {
  const specs = new Map<string, EventSpec>()
  const evaluated: PlannedAudience[] = []
  for (const row of audiences) {
    const parsed = parseCondition(row.condition)
    // Only what this code once accepted is stored; a newer version's condition must not be half read.
    if (!parsed.ok) throw new RangeError(`audience ${row.audienceId} has an unreadable condition`)
    for (const need of leavesOf(parsed.condition)) specs.set(need.hash, need.events)
    if (!row.evaluated) continue
    const condition = bind(parsed.condition, leafFinder(leaves, row.workspaceId))
    if (condition === null) throw new RangeError(`audience ${row.audienceId} lacks a leaf`)
    const { audienceId: id, workspaceId } = row
    evaluated.push({ id, workspaceId, condition, leafIds: leafIdsOf(condition) })
  }
  const planned = leaves.flatMap((row): readonly PlannedLeaf[] => {
    const spec = specs.get(row.hash)
    if (spec === undefined) return []
    const { id, workspaceId, buildId, keep } = row
    const users = evaluated.filter(({ leafIds }) => leafIds.includes(id))
    const { name: event, where, window } = spec
    return [{ id, workspaceId, buildId, event, where, window, keep, audiences: users }]
  })
  return {
    version,
    leaves: new Map(planned.map((leaf) => [leaf.id, leaf])),
    audienceIds: new Set(audiences.map(({ audienceId }) => audienceId)),
    workspaces: byWorkspace(planned, evaluated),
  }
}

/** The smallest id that fits, so that everybody finds the same leaf. */
export const leafFinder =
  (leaves: readonly Omit<LeafRow, 'buildId'>[], workspaceId: number) =>
  (hash: string, keep: number): number | null =>
    leaves.find(
      (leaf) => leaf.workspaceId === workspaceId && leaf.hash === hash && leaf.keep >= keep,
    )?.id ?? null

const byWorkspace = (
  leaves: readonly PlannedLeaf[],
  audiences: readonly PlannedAudience[],
): ReadonlyMap<number, WorkspacePlan> => {
  const ids = new Set([...leaves, ...audiences].map(({ workspaceId }) => workspaceId))
  return new Map(
    [...ids].map((id) => {
      const own = audiences.filter(({ workspaceId }) => workspaceId === id)
      const plan = {
        leaves: Map.groupBy(
          leaves.filter(({ workspaceId }) => workspaceId === id),
          ({ event }) => event,
        ),
        audiences: own,
        traitAudiences: own.filter(({ condition }) => readsTraits(condition)),
      }
      return [id, plan]
    }),
  )
}

export const keepOf = (plan: Plan) => (leafId: number) =>
  plan.leaves.get(leafId)?.keep ?? Number.MAX_SAFE_INTEGER

/** For packing: what is not in the plan is dropped. */
export const knownTo = (plan: Plan) => ({
  leaf: (id: number) => plan.leaves.has(id),
  audience: (id: number) => plan.audienceIds.has(id),
})
