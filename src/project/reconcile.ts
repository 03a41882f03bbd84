// Comparing the configured audiences with those in the plan: what is gone, new or edited.
import { leafFinder } from '../audience/plan.ts'
import type { Problem } from '../domain/condition/condition.ts'
import type { Audience, Configuration } from '../domain/configuration.ts'
import {
  byKey,
  closedCondition,
  type Definition,
  definitionText,
  leavesOfDefinition,
  parseDefinition,
} from '../domain/definition.ts'
import type { JsonObject } from '../domain/message.ts'
import type { Source, Topic } from '../log/log.ts'
import { type Connection, holdsPositions, type Pool } from '../postgres/sql.ts'
import {
  addBuild,
  addLeaves,
  bumpPlan,
  dropAudiences,
  dropLeaves,
  ensurePositions,
  isRebuilding,
  type LeafRow,
  lockAllPositions,
  type PlanRow,
  readBuild,
  readLeaves,
  readPlanRow,
  readStates,
  saveAudiences,
  type Wanted,
} from './build-store.ts'

const topics: readonly Topic[] = ['calls', 'calls.import']

type ReconcileDeps = { readonly pool: Pool; readonly source: Source }

/**
 * Drops what is gone and opens one build for all that is new or edited; while a build or a rebuild is
 * open, those wait for its end. Returns what it did, `null` for nothing.
 */
export const reconcile = async (
  { pool, source }: ReconcileDeps,
  configuration: Configuration,
): Promise<{ readonly gone: number; readonly opened: number } | null> => {
  const plan = await readPlanRow(pool)
  // Another process knows a newer configuration: what this one lacks may be new, not gone.
  if (configuration.version < plan.configuration) return null
  const states = new Map((await readStates(pool)).map((row) => [row.audienceId, row.definition]))
  const others = othersOf(configuration)
  const wanted = [...configuration.audiences.values()].map((audience): Wanted => {
    const condition = closed(audience, others(audience.workspaceId))
    const definition = readDefinition(audience.id, { ...audience, condition })
    const isNew = !states.has(audience.id)
    return { audience, condition, definition, text: definitionText(definition), isNew }
  })
  const gone = [...states.keys()].filter((id) => !configuration.audiences.has(id))
  const busy = (await readBuild(pool)) !== null || (await isRebuilding(pool))
  const changed = busy
    ? []
    : wanted.filter(({ audience, text }) => states.get(audience.id) !== text)
  if (gone.length === 0 && changed.length === 0) return null
  await ensurePositions(pool, await partitionsOf(source))
  const next = { version: plan.version, configuration: configuration.version }
  await pool.transaction((tx) => change(tx, { next, wanted, gone, changed }), holdsPositions)
  return { gone: gone.length, opened: changed.length }
}

type Others = ReadonlyMap<string, Audience>

/** By workspace, each worked out once: there may be thousands to look up in it. */
const othersOf = ({ audiences }: Configuration): ((workspaceId: number) => Others) => {
  const known = new Map<number, Others>()
  return (workspaceId) => {
    const others = known.get(workspaceId) ?? byKey(audiences.values(), workspaceId)
    known.set(workspaceId, others)
    return others
  }
}

const closed = (audience: Audience, others: Others): JsonObject => {
  const expanded = closedCondition(audience, others)
  if (expanded.ok) return expanded.json
  throw unreadable(audience.id, expanded.problems[0])
}

type Stored = Pick<Audience, 'kind' | 'condition' | 'timezone'>

const readDefinition = (id: number, stored: Stored): Definition => {
  const parsed = parseDefinition(stored)
  if (parsed.ok) return parsed.definition
  throw unreadable(id, parsed.problems[0])
}

const unreadable = (id: number, problem: Problem | undefined): RangeError =>
  new RangeError(
    `audience ${id} was saved with a condition that cannot be evaluated: ${problem?.path} ${problem?.message}`,
  )

const partitionsOf = async (source: Source) => {
  const bounds = await Promise.all(topics.map((topic) => source.bounds(topic)))
  return topics.flatMap((topic, at) =>
    (bounds[at] ?? []).map((_, partition) => ({ topic, partition })),
  )
}

type Change = {
  readonly next: PlanRow
  readonly wanted: readonly Wanted[]
  readonly gone: readonly number[]
  readonly changed: readonly Wanted[]
}

const change = async (tx: Connection, { next, wanted, gone, changed }: Change): Promise<void> => {
  await lockAllPositions(tx)
  await bumpPlan(tx, next)
  if (gone.length > 0) await dropAudiences(tx, gone)
  await dropIdleLeaves(tx)
  if (changed.length === 0) return
  const leaves = missingLeaves(await readLeaves(tx), wanted, changed)
  const hasHistory = leaves.length > 0 || changed.some(tiesAnew)
  const buildId = await addBuild(tx, hasHistory ? 'folding' : 'evaluating')
  if (leaves.length > 0) await addLeaves(tx, { buildId, leaves })
  await saveAudiences(tx, { buildId, wanted: changed })
  await dropIdleLeaves(tx)
}

/** A leaf without an audience is folded no more: it must not be found by a later audience. */
const dropIdleLeaves = async (tx: Connection): Promise<void> => {
  const leaves = await readLeaves(tx)
  const used = new Set(
    (await readStates(tx)).flatMap(({ audienceId, workspaceId, ...stored }) =>
      leavesOfDefinition(readDefinition(audienceId, stored)).flatMap(
        (need) => leafFinder(leaves, workspaceId)(need) ?? [],
      ),
    ),
  )
  const idle = leaves.filter(({ id }) => !used.has(id)).map(({ id }) => id)
  if (idle.length > 0) await dropLeaves(tx, idle)
}

/** Ties made of calls before there were any are found with an audience's first build. */
const tiesAnew = ({ definition, isNew }: Wanted): boolean => isNew && definition.type === 'account'

/** Each new leaf keeps what the most demanding audience needs of it. */
const missingLeaves = (
  leaves: readonly LeafRow[],
  wanted: readonly Wanted[],
  changed: readonly Wanted[],
): readonly Omit<LeafRow, 'id'>[] => {
  const keeps = new Map<string, number>()
  const nameOf = (workspaceId: number, hash: string) => `${workspaceId}:${hash}`
  for (const { audience, definition } of wanted)
    for (const { hash, keep } of leavesOfDefinition(definition)) {
      const name = nameOf(audience.workspaceId, hash)
      keeps.set(name, Math.max(keeps.get(name) ?? 0, keep))
    }
  const missing = new Map<string, Omit<LeafRow, 'id'>>()
  for (const { audience, definition } of changed)
    for (const { hash, keep } of leavesOfDefinition(definition)) {
      const { workspaceId } = audience
      if (leafFinder(leaves, workspaceId)({ hash, keep }) !== null) continue
      const name = nameOf(workspaceId, hash)
      missing.set(name, { workspaceId, hash, keep: keeps.get(name) as number })
    }
  return [...missing.values()]
}
