// Makes a deletion request: recorded with its suppressions, and once however often it is asked for.
import type { Sql } from '../postgres/sql.ts'
import { hashText, loadSuppressionKey } from './key.ts'
import { recordRequest } from './record.ts'
import { findOnce, insertRequest, type NewRequest } from './request-store.ts'

export type Asked = Omit<NewRequest, 'idempotency'> & {
  /** `null`: as often as it is asked for. */
  readonly idempotencyKey: string | null
}

export type Answered =
  | { readonly outcome: 'made' | 'made before'; readonly id: number }
  /** The key was used for something else. */
  | { readonly outcome: 'differs' }
  | { readonly outcome: 'suppressions_full' }

/** In a transaction that holds off every other one of its kind. */
export const requestDeletion = async (
  tx: Sql,
  { idempotencyKey, ...asked }: Asked,
): Promise<Answered> => {
  const { workspaceId, kind, ids, createdAt } = asked
  const key = await loadSuppressionKey(tx)
  const idempotency =
    idempotencyKey === null
      ? null
      : {
          key: hashText(key, `idempotency ${workspaceId} ${idempotencyKey}`),
          body: hashText(key, JSON.stringify([kind, ids])),
        }
  const before = idempotency && (await findOnce(tx, { workspaceId, key: idempotency.key }))
  if (before)
    return before.body.equals(idempotency?.body as Buffer)
      ? { outcome: 'made before', id: before.id }
      : { outcome: 'differs' }
  const id = await insertRequest(tx, { ...asked, idempotency })
  const recorded = await recordRequest(tx, { id, workspaceId, kind, createdAt })
  if (recorded === 'recorded') return { outcome: 'made', id }
  await tx.query('delete from deletion_request where id = $1', [id])
  return { outcome: recorded }
}
