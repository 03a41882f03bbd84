// Records the suppressions of a request: from the commit on, processes take them up by themselves.
import { type IdentityKind, isBlocked } from '../domain/identity.ts'
import type { Sql } from '../postgres/sql.ts'
import { hashOf, loadSuppressionKey } from './key.ts'
import { erases, meantFor, type RequestKind, requestLimits } from './request.ts'
import { countSuppressions, saveSuppressions } from './suppression-store.ts'

export type Recording = {
  readonly id: number
  readonly workspaceId: number
  readonly kind: RequestKind
  readonly createdAt: Date
}

type Row = {
  readonly n: number
  readonly kind: number
  readonly value: string
  readonly found: boolean
}

export const kindOf = (kind: number): IdentityKind => (kind === 0 ? 'user' : 'anonymous')

/** Once for each id: those of the same profiles are looked for, and hashed with the ones asked for. */
export const recordRequest = async (
  tx: Sql,
  request: Recording,
): Promise<'recorded' | 'suppressions_full'> => {
  if (erases(request.kind)) await addFound(tx, request)
  const { rows: unhashed } = await tx.query<Row>(
    `select n, kind, value, found from deletion_subject
      where request_id = $1 and hash is null order by n`,
    [request.id],
  )
  // Shared by mistake: they name nobody, and suppressing them would silence many.
  const rows = unhashed.filter(({ value }) => !isBlocked(value))
  if (request.kind !== 'unsuppress') {
    const held = await countSuppressions(tx)
    if (held + rows.length > requestLimits.suppressionsMax) return 'suppressions_full'
  }
  const key = await loadSuppressionKey(tx)
  const { workspaceId, createdAt } = request
  const hashes = rows.map(({ kind, value }) =>
    hashOf(key, { workspaceId, kind: kindOf(kind), value }),
  )
  const version = await saveSuppressions(
    tx,
    rows.map((row, at) => ({
      hash: hashes[at] as Buffer,
      workspaceId,
      ...meantFor(request.kind, row, createdAt),
    })),
  )
  await tx.query(
    `update deletion_subject s set hash = h.hash
       from unnest($2::int[], $3::bytea[]) as h(n, hash)
      where s.request_id = $1 and s.n = h.n`,
    [request.id, rows.map(({ n }) => n), hashes],
  )
  await tx.query('update deletion_request set suppression_version = $2 where id = $1', [
    request.id,
    version,
  ])
  return 'recorded'
}

/** Stragglers by any id of the profile would make it anew. Index identity_user. */
const addFound = async (tx: Sql, { id, workspaceId }: Recording): Promise<void> => {
  await tx.query(
    `with asked as (
       select s.kind, s.value, i.user_key from deletion_subject s
         left join identity i on i.workspace_id = $2 and i.kind = s.kind and i.value = s.value
        where s.request_id = $1
     ), found as (
       select kind, value from identity where user_key in (select user_key from asked)
        union
       select kind, value from deletion_identity where request_id = $1
       except
       select kind, value from asked
     )
     insert into deletion_subject (request_id, n, kind, value, found)
     select $1, (select max(n) from deletion_subject where request_id = $1)
              + row_number() over (order by kind, value), kind, value, true from found`,
    [id, workspaceId],
  )
}
