// The audit log: who changed what, written in the transaction of the change itself.
import type { Json } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'

export type AuditKind =
  | 'workspace'
  | 'source'
  | 'destination'
  | 'audience'
  | 'trait'
  | 'token'
  | 'sync'
  | 'deletion'
  | 'recovery'
  | 'replay'
  | 'rebuild'
  | 'import'

export type AuditEntry = {
  /** The name of the token that acted, or of the start-up step. */
  readonly actor: string
  readonly action: 'created' | 'changed' | 'deleted' | 'requested'
  readonly kind: AuditKind
  readonly entityId: number | null
  readonly name: string
  readonly changes: Changes
}

/** Field by field; a secret shows only that it changed. */
export type Changes = Readonly<Record<string, { readonly from?: Json; readonly to?: Json }>>

export const insertAudit = async (sql: Sql, entries: readonly AuditEntry[]): Promise<void> => {
  if (entries.length === 0) return
  await sql.query(
    `insert into audit_log (actor, action, kind, entity_id, name, changes)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[], $6::json[])`,
    [
      entries.map(({ actor }) => actor),
      entries.map(({ action }) => action),
      entries.map(({ kind }) => kind),
      entries.map(({ entityId }) => entityId),
      entries.map(({ name }) => name),
      entries.map(({ changes }) => JSON.stringify(changes)),
    ],
  )
}

export type AuditRow = AuditEntry & { readonly id: number; readonly at: Date }

/** Newest first, below `before` when given. */
export const loadAudit = async (
  sql: Sql,
  page: { readonly before: number | null; readonly limit: number },
): Promise<readonly AuditRow[]> => {
  const { rows } = await sql.query<Omit<AuditRow, 'id'> & { id: bigint }>(
    `select id, at, actor, action, kind, entity_id as "entityId", name, changes
       from audit_log where $1::bigint is null or id < $1 order by id desc limit $2`,
    [page.before, page.limit],
  )
  return rows.map((row) => ({ ...row, id: Number(row.id) }))
}
