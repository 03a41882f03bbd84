// The plan: which leaves are folded for which events, and which audiences are evaluated from them.
import {
  asksTraits,
  type BoundCondition,
  type BoundLeaf,
  bind,
  type LeafFinder,
  leafIdsOf,
  readsTraits,
} from '../domain/condition/evaluate.ts'
import {
  type Feed,
  feedsOf,
  kindOf,
  type LeafNeed,
  type LeafSpec,
  measureNeed,
} from '../domain/condition/leaf.ts'
import type { Kind, Summary } from '../domain/condition/summary/kind.ts'
import type { Audience } from '../domain/configuration.ts'
import {
  conditionOf,
  type Definition,
  leavesOfDefinition,
  parseDefinition,
} from '../domain/definition.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

/** What is worked out for each user: whether they are in it, or a value. */
export type Yield =
  | { readonly type: 'membership'; readonly condition: BoundCondition }
  | { readonly type: 'value'; readonly leaf: BoundLeaf }
  /** Whether they count for their accounts: who is in the audience is decided of those. */
  | { readonly type: 'mark'; readonly condition: BoundCondition }

export type PlannedAudience = {
  readonly id: number
  readonly workspaceId: number
  readonly yields: Yield
  readonly leafIds: readonly number[]
}

export type PlannedLeaf = {
  readonly id: number
  readonly workspaceId: number
  readonly buildId: number
  readonly kind: Kind<Summary>
  readonly feeds: readonly Feed[]
  /** Those evaluated now, ascending by id; one still being built is not among them. */
  readonly audiences: readonly PlannedAudience[]
}

/** An event of one name going to one step of a leaf. */
export type PlannedFeed = Omit<Feed, 'event'> & { readonly leaf: PlannedLeaf }

type WorkspacePlan = {
  /** By event name. */
  readonly feeds: ReadonlyMap<string, readonly PlannedFeed[]>
  /** Ascending by id, as those that ask for traits are. */
  readonly audiences: readonly PlannedAudience[]
  readonly traitAudiences: readonly PlannedAudience[]
}

export type Plan = {
  readonly version: bigint
  readonly leaves: ReadonlyMap<number, PlannedLeaf>
  /** All, in whatever state. */
  readonly audienceIds: ReadonlySet<number>
  /** Of audiences of accounts, in whatever state, by workspace. */
  readonly accountIds: ReadonlyMap<number, ReadonlySet<number>>
  readonly workspaces: ReadonlyMap<number, WorkspacePlan>
}

type AudienceRow = {
  readonly audienceId: number
  readonly workspaceId: number
  readonly kind: Audience['kind']
  readonly condition: JsonObject
  readonly timezone: string
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
                 'kind', a.kind, 'condition', a.condition, 'timezone', a.timezone,
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

/**
 * For whoever needs the plan again and again: reading conditions is most of loading it, so it is kept for as
 * long as its version lasts.
 */
export const openPlans = (): ((sql: Sql) => Promise<Plan>) => {
  let held: Plan | null = null
  return async (sql) => {
    const version = await planVersion(sql)
    const plan = held?.version === version ? held : await loadPlan(sql)
    held = plan
    return plan
  }
}

type Parts = {
  readonly version: bigint
  readonly audiences: readonly AudienceRow[]
  readonly leaves: readonly LeafRow[]
}

const planOf = ({ version, audiences, leaves }: Parts): Plan => {
  const read = audiences.map((row) => ({ row, definition: readDefinition(row) }))
  const specs = new Map<string, LeafSpec>()
  for (const { definition } of read)
    for (const { hash, spec } of leavesOfDefinition(definition)) specs.set(hash, spec)
  const kinds = new Map(
    leaves.flatMap(({ id, hash, keep }) => {
      const spec = specs.get(hash)
      return spec === undefined ? [] : [[id, { spec, kind: kindOf(spec, keep) }] as const]
    }),
  )
  const evaluated = read.flatMap(({ row, definition }): readonly PlannedAudience[] => {
    if (!row.evaluated) return []
    const { audienceId: id, workspaceId } = row
    const find = leafFinder(leaves, workspaceId)
    const yields = yieldsOf(definition, (need) => {
      const leafId = find(need)
      const kind = leafId === null ? undefined : kinds.get(leafId)?.kind
      return leafId === null || kind === undefined ? null : { id: leafId, kind }
    })
    if (yields === null) throw new RangeError(`audience ${id} lacks a leaf`)
    const leafIds = yields.type === 'value' ? [yields.leaf.id] : leafIdsOf(yields.condition)
    return [{ id, workspaceId, yields, leafIds }]
  })
  const planned = leaves.flatMap(({ id, workspaceId, buildId }): readonly PlannedLeaf[] => {
    const known = kinds.get(id)
    if (known === undefined) return []
    const users = evaluated.filter(({ leafIds }) => leafIds.includes(id))
    const { spec, kind } = known
    return [{ id, workspaceId, buildId, kind, feeds: feedsOf(spec), audiences: users }]
  })
  return {
    version,
    leaves: new Map(planned.map((leaf) => [leaf.id, leaf])),
    audienceIds: new Set(audiences.map(({ audienceId }) => audienceId)),
    accountIds: accountIdsBy(read),
    workspaces: byWorkspace(planned, evaluated),
  }
}

type Read = { readonly row: AudienceRow; readonly definition: Definition }

const accountIdsBy = (read: readonly Read[]): Plan['accountIds'] => {
  const ids = new Map<number, Set<number>>()
  for (const { row, definition } of read)
    if (definition.type === 'account')
      ids.set(row.workspaceId, (ids.get(row.workspaceId) ?? new Set()).add(row.audienceId))
  return ids
}

const noIds: ReadonlySet<number> = new Set()

/** The workspace's audiences of accounts. */
export const accountIdsOf = ({ accountIds }: Plan, workspaceId: number): ReadonlySet<number> =>
  accountIds.get(workspaceId) ?? noIds

/** Only what this code once accepted is stored; a newer version's condition must not be half read. */
const readDefinition = ({ audienceId, ...row }: AudienceRow): Definition => {
  const parsed = parseDefinition(row)
  if (!parsed.ok) throw new RangeError(`audience ${audienceId} has an unreadable condition`)
  return parsed.definition
}

const yieldsOf = (definition: Definition, find: LeafFinder): Yield | null => {
  if (definition.type === 'value') {
    const leaf = find(measureNeed(definition.measure))
    return leaf === null ? null : { type: 'value', leaf }
  }
  const condition = bind(conditionOf(definition), find)
  const type = definition.type === 'account' ? 'mark' : 'membership'
  return condition === null ? null : { type, condition }
}

/** The smallest id that fits, so that everybody finds the same leaf. */
export const leafFinder =
  (leaves: readonly Omit<LeafRow, 'buildId'>[], workspaceId: number) =>
  ({ hash, keep }: Pick<LeafNeed, 'hash' | 'keep'>): number | null =>
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
      const feeds = leaves
        .filter(({ workspaceId }) => workspaceId === id)
        .flatMap((leaf) => leaf.feeds.map((feed) => ({ ...feed, leaf })))
      const plan = {
        feeds: Map.groupBy(feeds, ({ event }) => event),
        audiences: own,
        traitAudiences: own.filter(({ yields }) =>
          yields.type === 'value' ? asksTraits(yields.leaf) : readsTraits(yields.condition),
        ),
      }
      return [id, plan]
    }),
  )
}

export type Known = { leaf(id: number): boolean; audience(id: number): boolean }

const knowns = new WeakMap<Plan, Known>()

/** For packing: what is not in the plan is dropped. The same one each time. */
export const knownTo = (plan: Plan): Known => {
  const held = knowns.get(plan)
  if (held !== undefined) return held
  const known: Known = {
    leaf: (id) => plan.leaves.has(id),
    audience: (id) => plan.audienceIds.has(id),
  }
  knowns.set(plan, known)
  return known
}
