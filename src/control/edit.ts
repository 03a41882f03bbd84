// One edit of the configuration: a transaction that holds every other writer off, checks, writes, audits.
import type { AddressRules } from '../http/addresses.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import { type AuditEntry, type Changes, insertAudit } from './audit.ts'
import type { Problem } from './problem.ts'
import type { Keyring } from './secret.ts'
import { loadState, lockConfiguration, type State } from './state.ts'

export type Editing = {
  readonly tx: Sql
  /** As of this transaction, kept up with its own writes. */
  readonly state: State
  /** Who is named in the audit log. */
  readonly actor: string
  /** Where webhooks may go. */
  readonly addresses: AddressRules
  /** What secrets are sealed with, and opened. */
  readonly keyring: Keyring
}

export type EditOptions = Pick<Editing, 'actor' | 'addresses' | 'keyring'>

export type Saved<T> =
  | {
      readonly action: 'created' | 'changed' | 'unchanged'
      readonly entity: T
      readonly changes: Changes
    }
  | { readonly action: 'refused'; readonly problems: readonly Problem[] }

export const edit = <R>(
  pool: Pool,
  options: EditOptions,
  work: (editing: Editing) => Promise<R>,
): Promise<R> =>
  pool.transaction(async (tx) => {
    await lockConfiguration(tx)
    return work({ ...options, tx, state: await loadState(tx, options.keyring) })
  })

export const audit = (editing: Editing, entry: Omit<AuditEntry, 'actor'>): Promise<void> =>
  insertAudit(editing.tx, [{ ...entry, actor: editing.actor }])

export const refused = (problems: readonly Problem[]) => ({ action: 'refused', problems }) as const
