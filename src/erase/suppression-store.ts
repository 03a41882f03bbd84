// The SQL of suppressions: hashes of ids, and the version by which every process knows that it has them all.
import type { Sql } from '../postgres/sql.ts'

export type StoredSuppression = {
  readonly hash: Buffer
  readonly suppressed: boolean
  readonly deletedBefore: Date | null
  readonly version: bigint
}

type After = { readonly version: bigint; readonly hash: Buffer }

/** What changed after a version, in order; by suppression_since. */
export const loadSuppressions = async (
  sql: Sql,
  { version, hash }: After,
  limit: number,
): Promise<readonly StoredSuppression[]> => {
  const { rows } = await sql.query<StoredSuppression>(
    `select hash, suppressed, deleted_before as "deletedBefore", version from suppression
      where version >= $1 and (version, hash) > ($1, $2) order by version, hash limit $3`,
    [version, hash, limit],
  )
  return rows
}

export const readVersion = async (sql: Sql): Promise<bigint> => {
  const { rows } = await sql.query<{ version: bigint }>('select version from suppression_version')
  return rows[0]?.version ?? 0n
}

export type Change = {
  readonly hash: Buffer
  readonly workspaceId: number
  /** `null`: as it was. */
  readonly suppressed: boolean | null
  readonly deletedBefore: Date | null
}

/** Returns the version that has them, which nobody sees before the transaction's end. */
export const saveSuppressions = async (tx: Sql, changes: readonly Change[]): Promise<bigint> => {
  const { rows } = await tx.query<{ version: bigint }>(
    'update suppression_version set version = version + 1 returning version',
  )
  const version = rows[0]?.version ?? 0n
  // In the order of all writers, so that none waits for another in a ring: the version's row is held by one.
  for (const keeps of [true, false])
    await saveSome(
      tx,
      changes.filter(({ suppressed }) => (suppressed === null) === keeps),
      { version, keeps },
    )
  return version
}

type Saving = { readonly version: bigint; readonly keeps: boolean }

const saveSome = async (
  tx: Sql,
  changes: readonly Change[],
  { version, keeps }: Saving,
): Promise<void> => {
  if (changes.length === 0) return
  await tx.query(
    `insert into suppression as s (hash, workspace_id, suppressed, deleted_before, version)
     select hash, workspace_id, coalesce(suppressed, false), deleted_before, $5
       from unnest($1::bytea[], $2::int[], $3::boolean[], $4::timestamptz[])
         as c(hash, workspace_id, suppressed, deleted_before)
      order by hash
     on conflict (hash) do update set version = excluded.version,
       suppressed = case when $6::boolean then s.suppressed else excluded.suppressed end,
       deleted_before = greatest(s.deleted_before, excluded.deleted_before)`,
    [
      changes.map(({ hash }) => hash),
      changes.map(({ workspaceId }) => workspaceId),
      changes.map(({ suppressed }) => suppressed),
      changes.map(({ deletedBefore }) => deletedBefore),
      version,
      keeps,
    ],
  )
}

export const countSuppressions = async (sql: Sql): Promise<number> => {
  const { rows } = await sql.query<{ count: number }>(
    'select count(*)::float8 as count from suppression',
  )
  return rows[0]?.count ?? 0
}

/** The oldest version that a living process goes by; `null`: none lives. */
export const acknowledgedVersion = async (sql: Sql, aliveSince: Date): Promise<bigint | null> => {
  const { rows } = await sql.query<{ version: bigint | null }>(
    'select min(suppression_version) as version from process where beat_at >= $1',
    [aliveSince],
  )
  return rows[0]?.version ?? null
}
