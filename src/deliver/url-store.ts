// Delivery's SQL for URLs that are not well. Every instant is a parameter.
import type { UrlState } from '../domain/url-health.ts'
import { urlKey } from '../domain/url-key.ts'
import type { Sql } from '../postgres/sql.ts'

/** Read from the table, `url` is what stands for it there. */
export type UrlKey = { readonly destinationId: number; readonly url: string }

export type UrlRow = UrlKey & {
  readonly state: Exclude<UrlState, 'ok'>
  readonly reason: string | null
  readonly status: number | null
  readonly since: Date
}

export const readUrls = async (sql: Sql): Promise<readonly UrlRow[]> => {
  const { rows } = await sql.query<UrlRow>(
    `select destination_id as "destinationId", url, state, reason, status, since
       from webhook_url order by destination_id, url`,
  )
  return rows
}

export const saveUrls = async (sql: Sql, rows: readonly UrlRow[], probeAt: Date): Promise<void> => {
  if (rows.length === 0) return
  await sql.query(
    `insert into webhook_url (destination_id, url, state, reason, status, since, probe_at)
     select t.*, $7 from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::int[], $6::timestamptz[])
       as t(destination_id, url, state, reason, status, since)
     on conflict (destination_id, url) do update set state = excluded.state, reason = excluded.reason,
       status = excluded.status, since = excluded.since, probe_at = excluded.probe_at`,
    [
      rows.map(({ destinationId }) => destinationId),
      rows.map(({ url }) => urlKey(url)),
      rows.map(({ state }) => state),
      rows.map(({ reason }) => reason),
      rows.map(({ status }) => status),
      rows.map(({ since }) => since),
      probeAt,
    ],
  )
}

/** They are well: found so, said so by an operator, or no longer configured. */
export const forgetUrls = async (sql: Sql, keys: readonly UrlKey[]): Promise<void> => {
  if (keys.length === 0) return
  await sql.query(
    `delete from webhook_url w using unnest($1::int[], $2::text[]) as t(destination_id, url)
      where w.destination_id = t.destination_id and w.url = t.url`,
    [keys.map(({ destinationId }) => destinationId), keys.map(({ url }) => urlKey(url))],
  )
}

type Turn = { readonly at: Date; readonly next: Date; readonly limit: number }

/** Those whose certificate is to be looked at now; of all processes one takes each. */
export const takeProbes = async (sql: Sql, turn: Turn): Promise<readonly UrlKey[]> => {
  const { rows } = await sql.query<UrlKey>(
    `update webhook_url w set probe_at = $2
      where (w.destination_id, w.url) in (
        select destination_id, url from webhook_url
         where state = 'held_tls' and probe_at <= $1
         order by probe_at limit $3 for update skip locked)
     returning w.destination_id as "destinationId", w.url`,
    [turn.at, turn.next, turn.limit],
  )
  return rows
}
