// The SQL of rebuilds: their rows, how far live and they are, and the decisions they follow.
import type { Place } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import { type Vector, vectorOf } from './deps.ts'
import type { Decision } from './order.ts'

export type RebuildState = 'requested' | 'folding' | 'comparing' | 'differs' | 'swapping'
export type RebuildEnd = 'swapped' | 'verified' | 'cancelled' | 'failed'

export type Rebuild = {
  readonly id: number
  readonly state: RebuildState
  readonly verifyOnly: boolean
  readonly fromKept: boolean
  readonly acceptsDifferences: boolean
}

/** The one that is open. */
export const findOpen = async (sql: Sql): Promise<Rebuild | null> => {
  const { rows } = await sql.query<Rebuild>(
    `select id, state, verify_only as "verifyOnly", from_kept as "fromKept",
            accepts_differences as "acceptsDifferences"
       from rebuild where state in ('requested', 'folding', 'comparing', 'differs', 'swapping')`,
  )
  return rows[0] ?? null
}

type Turn = {
  readonly id: number
  readonly from: RebuildState
  readonly to: RebuildState | RebuildEnd
  /** Of the end. */
  readonly at?: Date
  readonly reason?: string
}

/** `false` when it is not in `from` any more: cancelled meanwhile. */
export const turnRebuild = async (
  sql: Sql,
  { id, from, to, at, reason }: Turn,
): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `update rebuild set state = $3, ended_at = $4, reason = $5 where id = $1 and state = $2`,
    [id, from, to, at ?? null, reason ?? null],
  )
  return rowCount === 1
}

/** What it waits for; `null` once it does not wait. */
export const tellWaiting = async (sql: Sql, id: number, reason: string | null): Promise<void> => {
  await sql.query('update rebuild set reason = $2 where id = $1 and reason is distinct from $2', [
    id,
    reason,
  ])
}

export type Comparison = {
  readonly at: Date
  readonly users: number
  readonly differing: number
  /** The first of them. */
  readonly differences: readonly object[]
}

export const saveComparison = async (sql: Sql, id: number, found: Comparison): Promise<void> => {
  await sql.query(
    `update rebuild set compared_at = $2, users = $3, differing = $4, differences = $5
      where id = $1`,
    [id, found.at, found.users, found.differing, JSON.stringify(found.differences)],
  )
}

/** Where the projector stands in the schema of the session, or the transaction's snapshot. */
export const readPositions = async (sql: Sql): Promise<Vector> => {
  const { rows } = await sql.query<Place & { readonly next: bigint }>(
    `select topic, partition, next from position where reader = 'project'`,
  )
  return vectorOf(rows)
}

type Range = Place & { readonly from: bigint; readonly until: bigint; readonly limit: number }

/** By identity_order_pkey. */
export const readDecisions = async (sql: Sql, range: Range): Promise<readonly Decision[]> => {
  const { rows } = await sql.query<Decision>(
    `select log_offset as offset, seq,
            case previous when 0 then 'user' when 1 then 'anonymous' end as previous
       from identity_order
      where topic = $1 and partition = $2 and log_offset >= $3 and log_offset < $4
      order by log_offset limit $5`,
    [range.topic, range.partition, range.from, range.until, range.limit],
  )
  return rows
}

export const isBuilding = async (sql: Sql): Promise<boolean> => {
  const { rowCount } = await sql.query('select 1 from audience_build limit 1')
  return rowCount !== 0
}

type Start = Place & { readonly start: bigint }

/** In the rebuild's schema: each partition from where the log begins. */
export const seedPositions = async (
  tx: Sql,
  schema: string,
  starts: readonly Start[],
): Promise<void> => {
  await tx.query(
    `insert into ${schema}.position (reader, topic, partition, next, epoch)
     select 'project', topic, partition, next, 0
       from unnest($1::text[], $2::int[], $3::bigint[]) as p(topic, partition, next)`,
    [
      starts.map(({ topic }) => topic),
      starts.map(({ partition }) => partition),
      starts.map(({ start }) => start),
    ],
  )
}
