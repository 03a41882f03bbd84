// How the URLs of destinations are doing, as the deliver stage's processes told.
import { urlKey } from '../domain/url-key.ts'
import type { Sql } from '../postgres/sql.ts'

export type UrlStanding = {
  readonly url: string
  readonly state: 'ok' | 'rejecting' | 'held_tls' | 'disabled'
  readonly breaker: 'closed' | 'open' | 'ramp'
  /** Requests at a time, over all processes that hold it back; `null`: as many as it may get. */
  readonly limit: number | null
  readonly reason: string | null
  readonly status: number | null
  readonly since: Date | null
}

type StateRow = Omit<UrlStanding, 'breaker' | 'limit'>
type BreakerRow = Omit<UrlStanding, 'state'>

/** What a process said longer ago than this it no longer says. */
const staleMs = 30_000

/** Of the URLs given; the worst that any process says. */
export const loadStandings = async (
  sql: Sql,
  asked: { readonly destinationId: number; readonly urls: readonly string[]; readonly at: Date },
): Promise<readonly UrlStanding[]> => {
  const { destinationId, urls, at } = asked
  const { rows: states } = await sql.query<StateRow>(
    'select url, state, reason, status, since from webhook_url where destination_id = $1',
    [destinationId],
  )
  const { rows: breakers } = await sql.query<BreakerRow>(
    `select distinct on (url) url, breaker, sum(limit_now) over (partition by url)::int as limit,
            reason, status, since
       from webhook_breaker where destination_id = $1 and told_at > $2
      order by url, array_position(array['open', 'ramp', 'closed'], breaker), since`,
    [destinationId, new Date(at.getTime() - staleMs)],
  )
  return urls.map((url) => {
    const state = states.find((row) => row.url === urlKey(url))
    const breaker = breakers.find((row) => row.url === urlKey(url))
    const { reason = null, status = null, since = null } = state ?? breaker ?? {}
    return {
      url,
      state: state?.state ?? 'ok',
      breaker: breaker?.breaker ?? 'closed',
      limit: breaker?.limit ?? null,
      ...{ reason, status, since },
    }
  })
}

/** The processes hear of it within seconds and begin carefully. */
export const enableUrl = async (
  sql: Sql,
  { destinationId, url }: { readonly destinationId: number; readonly url: string },
): Promise<boolean> => {
  const { rowCount } = await sql.query(
    'delete from webhook_url where destination_id = $1 and url = $2',
    [destinationId, urlKey(url)],
  )
  return (rowCount ?? 0) > 0
}
