// Versions of audiences and computed traits: what was saved, when and by whom, newest first.
import type { Audience } from '../domain/configuration.ts'
import type { Json } from '../domain/message.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Changes } from './audit.ts'

/** Older versions of one audience are forgotten; the audit log goes on knowing that there were some. */
export const versionsMax = 500

export type Definition = Readonly<Record<string, Json>>

type New = {
  readonly audience: Pick<Audience, 'id'>
  readonly actor: string
  readonly definition: Definition
  readonly changes: Changes
}

/** Under the lock of the configuration, so numbers have no gaps. */
export const insertVersion = async (
  tx: Sql,
  { audience, actor, definition, changes }: New,
): Promise<void> => {
  await tx.query(
    `insert into audience_version (audience_id, version, actor, definition, changes)
     select $1, coalesce(max(version), 0) + 1, $2, $3, $4
       from audience_version where audience_id = $1`,
    [audience.id, actor, JSON.stringify(definition), JSON.stringify(changes)],
  )
  await tx.query(
    `delete from audience_version
      where audience_id = $1
        and version <= (select max(version) from audience_version where audience_id = $1) - $2`,
    [audience.id, versionsMax],
  )
}

export type Version = {
  readonly version: number
  readonly at: Date
  readonly actor: string
  readonly definition: Definition
  readonly changes: Changes
}

type Page = { readonly audienceId: number; readonly before: number | null; readonly limit: number }

export const loadVersions = async (
  sql: Sql,
  { audienceId, before, limit }: Page,
): Promise<readonly Version[]> => {
  const { rows } = await sql.query<Version>(
    `select version, at, actor, definition, changes from audience_version
      where audience_id = $1 and ($2::int is null or version < $2)
      order by version desc limit $3`,
    [audienceId, before, limit],
  )
  return rows
}
