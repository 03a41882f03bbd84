// Alerts' SQL: what operators were told, and when, so that several processes tell it once.
import type { Sql } from '../postgres/sql.ts'

type Claim = { readonly key: string; readonly at: Date; readonly before: Date }

/** Whether it is ours to tell: not told since `before` by anybody. */
export const claimAlert = async (sql: Sql, { key, at, before }: Claim): Promise<boolean> => {
  const { rowCount } = await sql.query(
    `insert into operator_alert as a (key, told_at) values ($1, $2)
     on conflict (key) do update set told_at = excluded.told_at where a.told_at < $3`,
    [key, at, before],
  )
  return (rowCount ?? 0) > 0
}

export const forgetAlerts = async (sql: Sql, before: Date): Promise<void> => {
  await sql.query('delete from operator_alert where told_at < $1', [before])
}
