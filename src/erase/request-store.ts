// Deletion requests as they are made, read and moved from step to step.
import type { IdentityKind } from '../domain/identity.ts'
import { identityKinds } from '../domain/identity.ts'
import type { Sql } from '../postgres/sql.ts'
import { kindOf } from './record.ts'
import type { RequestKind, Subject } from './request.ts'

export type NewRequest = {
  readonly workspaceId: number
  readonly kind: RequestKind
  readonly createdAt: Date
  readonly ids: readonly { readonly kind: IdentityKind; readonly value: string }[]
  /** Hashed. */
  readonly idempotency: { readonly key: Buffer; readonly body: Buffer } | null
}

export const insertRequest = async (tx: Sql, made: NewRequest): Promise<number> => {
  const { rows } = await tx.query<{ id: number }>(
    `insert into deletion_request
       (workspace_id, origin, kind, created_at, idempotency_key, idempotency_body)
     values ($1, 'api', $2, $3, $4, $5) returning id`,
    [
      made.workspaceId,
      made.kind,
      made.createdAt,
      made.idempotency?.key ?? null,
      made.idempotency?.body ?? null,
    ],
  )
  const id = rows[0]?.id as number
  await tx.query(
    `insert into deletion_subject (request_id, n, kind, value)
     select $1, at - 1, kind, value
       from unnest($2::smallint[], $3::text[]) with ordinality as s(kind, value, at)`,
    [id, made.ids.map(({ kind }) => identityKinds[kind]), made.ids.map(({ value }) => value)],
  )
  return id
}

export type Once = { readonly id: number; readonly body: Buffer }

export const findOnce = async (
  tx: Sql,
  { workspaceId, key }: { readonly workspaceId: number; readonly key: Buffer },
): Promise<Once | null> => {
  const { rows } = await tx.query<Once>(
    `select id, idempotency_body as body from deletion_request
      where workspace_id = $1 and idempotency_key = $2`,
    [workspaceId, key],
  )
  return rows[0] ?? null
}

export const requestSteps = ['recorded', 'ordered', 'erasing', 'waiting', 'done'] as const

export type RequestStep = (typeof requestSteps)[number]

export type OpenRequest = {
  readonly id: number
  readonly workspaceId: number
  readonly kind: RequestKind
  readonly step: RequestStep
  readonly createdAt: Date
  readonly suppressionVersion: bigint | null
  readonly erasedAt: Date | null
  /** How many it has, those that were found included. */
  readonly ids: number
}

const open = `id, workspace_id as "workspaceId", kind, step, created_at as "createdAt",
  suppression_version as "suppressionVersion", erased_at as "erasedAt",
  (select count(*)::int from deletion_subject s where s.request_id = id) as ids`

/** The oldest first. */
export const loadOpen = async (sql: Sql, limit: number): Promise<readonly OpenRequest[]> => {
  const { rows } = await sql.query<OpenRequest>(
    `select ${open} from deletion_request
      where state in ('received', 'running') order by id limit $1`,
    [limit],
  )
  return rows
}

/**
 * As it is now, under lock; `null` when it is over, or another process has it in hand. Who writes rows that
 * refer to it is not held up.
 */
export const lockRequest = async (tx: Sql, id: number): Promise<OpenRequest | null> => {
  const { rows } = await tx.query<OpenRequest>(
    `select ${open} from deletion_request
      where id = $1 and state in ('received', 'running') for no key update skip locked`,
    [id],
  )
  return rows[0] ?? null
}

/** Those of the ids that are not erased yet, in order. */
export const loadUnordered = async (sql: Sql, id: number): Promise<readonly Subject[]> => {
  const { rows } = await sql.query<Omit<Subject, 'kind'> & { readonly kind: number }>(
    `select n, kind, value, found from deletion_subject
      where request_id = $1 and log_offset is null and value is not null order by n`,
    [id],
  )
  return rows.map((row) => ({ ...row, kind: kindOf(row.kind) }))
}

type Move = { readonly id: number; readonly step: RequestStep; readonly at: Date }

export const moveRequest = async (tx: Sql, { id, step, at }: Move): Promise<void> => {
  await tx.query(
    `update deletion_request set step = $2, state = 'running', started_at = coalesce(started_at, $3),
       erased_at = case when $2 = 'waiting' then $3 else erased_at end
      where id = $1`,
    [id, step, at],
  )
}

type End = { readonly id: number; readonly at: Date; readonly reason: string | null }

/** Nothing but hashes stays. */
export const endRequest = async (tx: Sql, { id, at, reason }: End): Promise<void> => {
  await tx.query('delete from deletion_identity where request_id = $1', [id])
  await tx.query('delete from deletion_profile where request_id = $1', [id])
  await tx.query('update deletion_subject set value = null where request_id = $1', [id])
  await tx.query(
    `update deletion_request set state = case when $3::text is null then 'finished' else 'failed' end,
       step = 'done', reason = $3, finished_at = $2, started_at = coalesce(started_at, $2),
       message_id = null
      where id = $1`,
    [id, at, reason],
  )
}

/** Ids of erased profiles that the request did not know when it was recorded. */
export const hasStrangers = async (sql: Sql, id: number): Promise<boolean> => {
  const { rows } = await sql.query<{ has: boolean }>(
    `select exists (
       select from deletion_identity i where i.request_id = $1 and not exists (
         select from deletion_subject s
          where s.request_id = $1 and s.kind = i.kind and s.value = i.value)) as has`,
    [id],
  )
  return rows[0]?.has === true
}
