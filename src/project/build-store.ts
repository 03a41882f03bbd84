// The SQL of builds: what audiences there are, their leaves, fences and how far each build has come.
import type { Audience } from '../domain/configuration.ts'
import type { Definition } from '../domain/definition.ts'
import type { JsonObject } from '../domain/message.ts'
import { Fault } from '../fault.ts'
import type { Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'

export type Build = {
  readonly id: number
  readonly phase: 'folding' | 'evaluating'
  readonly evaluated: number
}

export type AudienceStateRow = {
  readonly audienceId: number
  readonly workspaceId: number
  readonly kind: Audience['kind']
  readonly condition: JsonObject
  readonly timezone: string
  readonly definition: string
}

export type LeafRow = {
  readonly id: number
  readonly workspaceId: number
  readonly hash: string
  readonly keep: number
}

export type PlanRow = { readonly version: bigint; readonly configuration: bigint }

export const readPlanRow = async (sql: Sql): Promise<PlanRow> => {
  const { rows } = await sql.query<PlanRow>('select version, configuration from project_plan')
  return rows[0] as PlanRow
}

export const readStates = async (sql: Sql): Promise<readonly AudienceStateRow[]> => {
  const { rows } = await sql.query<AudienceStateRow>(
    `select audience_id as "audienceId", workspace_id as "workspaceId", kind, condition, timezone,
            definition
       from audience_state order by audience_id`,
  )
  return rows
}

export const readLeaves = async (sql: Sql): Promise<readonly LeafRow[]> => {
  const { rows } = await sql.query<LeafRow>(
    `select id, workspace_id as "workspaceId", hash, keep from leaf order by id`,
  )
  return rows
}

export const readBuild = async (sql: Sql): Promise<Build | null> => {
  const { rows } = await sql.query<Build>(
    `select id, phase, evaluated::float8 as evaluated from audience_build order by id limit 1`,
  )
  return rows[0] ?? null
}

/** The state is being folded anew, by the plan as it is now. */
export const isRebuilding = async (sql: Sql): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `select 1 from rebuild where state in ('requested', 'folding', 'comparing', 'differs', 'swapping')`,
  )
  return rowCount !== 0
}

type Partitions = readonly { readonly topic: Topic; readonly partition: number }[]

/** So that a partition nobody has gained yet can be locked, too. */
export const ensurePositions = async (sql: Sql, partitions: Partitions): Promise<void> => {
  await sql.query(
    `insert into position (reader, topic, partition, next, epoch)
     select 'project', topic, partition, 0, 0
       from unnest($1::text[], $2::int[]) as p(topic, partition)
     on conflict do nothing`,
    [partitions.map(({ topic }) => topic), partitions.map(({ partition }) => partition)],
  )
}

/** While they are held no batch is under way anywhere, and the next one reads the new plan. */
export const lockAllPositions = async (tx: Sql): Promise<void> => {
  await tx.query(
    `select 1 from position where reader = 'project' order by topic, partition for update`,
  )
}

/** Another runner got there first when this throws. */
export const bumpPlan = async (tx: Sql, { version, configuration }: PlanRow): Promise<void> => {
  const { rowCount } = await tx.query(
    'update project_plan set version = version + 1, configuration = $2 where version = $1',
    [version, configuration],
  )
  if (rowCount !== 1) throw outrun()
}

export const outrun = (): Fault =>
  new Fault('position_lost', 'another process builds the audiences', { retriable: true })

/** Live batches fold the build's leaves from here on; what came before is left to the build. */
export const addBuild = async (tx: Sql, phase: Build['phase']): Promise<number> => {
  const { rows } = await tx.query<{ id: number }>(
    'insert into audience_build (phase, evaluated) values ($1, 0) returning id',
    [phase],
  )
  const { id } = rows[0] as { id: number }
  if (phase === 'folding')
    await tx.query(
      `insert into audience_fence (build_id, topic, partition, fence, next)
       select $1, topic, partition, next, 0 from position where reader = 'project'`,
      [id],
    )
  return id
}

type NewLeaf = Omit<LeafRow, 'id'>

export const addLeaves = async (
  tx: Sql,
  { buildId, leaves }: { readonly buildId: number; readonly leaves: readonly NewLeaf[] },
): Promise<void> => {
  await tx.query(
    `insert into leaf (workspace_id, hash, keep, build_id)
     select workspace_id, hash, keep, $1
       from unnest($2::int[], $3::text[], $4::int[]) as l(workspace_id, hash, keep)`,
    [
      buildId,
      leaves.map(({ workspaceId }) => workspaceId),
      leaves.map(({ hash }) => hash),
      leaves.map(({ keep }) => keep),
    ],
  )
}

export const dropLeaves = async (tx: Sql, ids: readonly number[]): Promise<void> => {
  await tx.query('delete from leaf where id = any($1)', [ids])
}

export type Wanted = {
  readonly audience: Audience
  /** Without references. */
  readonly condition: JsonObject
  readonly definition: Definition
  readonly text: string
  /** There was no earlier version of it. */
  readonly isNew: boolean
}

/** A new version of each; what was synced of the old one stays, so that only differences are sent. */
export const saveAudiences = async (
  tx: Sql,
  { buildId, wanted }: { readonly buildId: number; readonly wanted: readonly Wanted[] },
): Promise<void> => {
  await tx.query(
    `insert into audience_state
       (audience_id, workspace_id, kind, version, state, condition, timezone, definition, build_id)
     select audience_id, workspace_id, kind, 1, 'backfilling', condition, timezone, definition, $1
       from unnest($2::int[], $3::int[], $4::text[], $5::jsonb[], $6::text[], $7::text[])
         as w(audience_id, workspace_id, kind, condition, timezone, definition)
     on conflict (audience_id) do update
       set version = audience_state.version + 1, state = 'backfilling', live_at = null,
           condition = excluded.condition, timezone = excluded.timezone,
           definition = excluded.definition,
           build_id = excluded.build_id`,
    [
      buildId,
      wanted.map(({ audience }) => audience.id),
      wanted.map(({ audience }) => audience.workspaceId),
      wanted.map(({ audience }) => audience.kind),
      wanted.map(({ condition }) => JSON.stringify(condition)),
      wanted.map(({ audience }) => audience.timezone),
      wanted.map(({ text }) => text),
    ],
  )
}

export const dropAudiences = async (tx: Sql, ids: readonly number[]): Promise<void> => {
  // What is to be taken back is read from there by the sync, which deletes it then.
  await tx.query(
    `delete from membership where audience_id = any($1)
        and audience_id not in (select r.audience_id from retraction r)`,
    [ids],
  )
  await tx.query('delete from account_count where mark = any($1)', [ids])
  for (const table of ['sync_destination', 'sync_leaver', 'audience_size', 'audience_state'])
    await tx.query(`delete from ${table} where audience_id = any($1)`, [ids])
}

export type Fence = {
  readonly topic: Topic
  readonly partition: number
  readonly fence: bigint
  readonly next: bigint
}

export const readFences = async (sql: Sql, buildId: number): Promise<readonly Fence[]> => {
  const { rows } = await sql.query<Fence>(
    `select topic, partition, fence, next from audience_fence
      where build_id = $1 and next < fence order by topic, partition`,
    [buildId],
  )
  return rows
}

/** Every partition that the build has a fence in. */
export const readPartitions = async (sql: Sql, buildId: number): Promise<Partitions> => {
  const { rows } = await sql.query<Partitions[number]>(
    'select topic, partition from audience_fence where build_id = $1',
    [buildId],
  )
  return rows
}

type FenceKey = { readonly buildId: number; readonly topic: string; readonly partition: number }

/** Where folding a partition's history would start again; `null` once the build is over. */
export const storedNext = async (
  sql: Sql,
  { buildId, topic, partition }: FenceKey,
): Promise<bigint | null> => {
  const { rows } = await sql.query<{ next: bigint }>(
    'select next from audience_fence where (build_id, topic, partition) = ($1, $2, $3)',
    [buildId, topic, partition],
  )
  return rows[0]?.next ?? null
}

/** Compare-and-set: history is folded once, whoever else may think that it is theirs to fold. */
export const moveFence = async (
  tx: Sql,
  {
    buildId,
    fence,
    next,
  }: { readonly buildId: number; readonly fence: Fence; readonly next: bigint },
): Promise<void> => {
  const { rowCount } = await tx.query(
    `update audience_fence set next = $5
      where build_id = $1 and topic = $2 and partition = $3 and next = $4`,
    [buildId, fence.topic, fence.partition, fence.next, next],
  )
  if (rowCount !== 1) throw outrun()
}

export const moveEvaluated = async (
  tx: Sql,
  { build, evaluated }: { readonly build: Build; readonly evaluated: number },
): Promise<void> => {
  const { rowCount } = await tx.query(
    `update audience_build set evaluated = $3 where id = $1 and evaluated = $2`,
    [build.id, build.evaluated, evaluated],
  )
  if (rowCount !== 1) throw outrun()
}

export const startEvaluating = async (tx: Sql, build: Build): Promise<void> => {
  const { rowCount } = await tx.query(
    `update audience_build set phase = 'evaluating' where id = $1 and phase = 'folding'`,
    [build.id],
  )
  if (rowCount !== 1) throw outrun()
}

/** Returns the ids of the audiences that are live now. */
export const finishBuild = async (
  tx: Sql,
  { build, at }: { readonly build: Build; readonly at: Date },
): Promise<readonly number[]> => {
  const { rowCount } = await tx.query('delete from audience_build where id = $1', [build.id])
  if (rowCount !== 1) throw outrun()
  const { rows } = await tx.query<{ id: number }>(
    `update audience_state set state = 'live', live_at = $2, build_id = null
      where build_id = $1 returning audience_id as id`,
    [build.id, at],
  )
  return rows.map(({ id }) => id)
}

export const buildAudiences = async (sql: Sql, build: Build): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ id: number }>(
    'select audience_id as id from audience_state where build_id = $1 order by 1',
    [build.id],
  )
  return rows.map(({ id }) => id)
}

/** The plan cannot change before the transaction ends. */
export const pinPlan = async (tx: Sql): Promise<void> => {
  await tx.query('select 1 from project_plan for share')
}

/** The highest receivedAt folded by anyone: no sync can be as of an earlier instant. */
export const highestFolded = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ folded: number | null }>(
    `select max(('x' || encode(state, 'hex'))::bit(64)::bigint)::float8 as folded
       from position where reader = 'project' and octet_length(state) = 8`,
  )
  return rows[0]?.folded ?? 0
}
