// Tells operators which URLs this process holds back by itself: beside the line, nothing waits for it.
import { isWell } from '../domain/url-health.ts'
import { urlKey } from '../domain/url-key.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Stage } from './stage.ts'
import type { UrlEntry } from './urls.ts'

/** Whether anything is in the table of this process. */
export type Report = { told: boolean }

const isHeldBack = ({ health }: UrlEntry): boolean =>
  !isWell(health) || health.breaker !== 'closed' || health.limit < health.cap

/** Rows of one report. */
const reportMax = 1_000
/** A process that died says nothing more after this. */
const forgetAfterMs = 60_000

/** Costs nothing while all is well. */
export const reportUrls = async (stage: Stage, report: Report): Promise<void> => {
  const held: UrlEntry[] = []
  for (const entry of stage.urls.entries.values())
    if (held.length < reportMax && isHeldBack(entry)) held.push(entry)
  if (held.length === 0 && !report.told) return
  try {
    await writeReport(stage.deps.pool, { owner: stage.owner, held, at: stage.deps.clock() })
    report.told = held.length > 0
  } catch (error) {
    stage.deps.logger.warn({ err: error }, 'urls.not_reported')
  }
}

type Written = { readonly owner: string; readonly held: readonly UrlEntry[]; readonly at: Date }

const writeReport = async (sql: Sql, { owner, held, at }: Written): Promise<void> => {
  await sql.query(
    `insert into webhook_breaker (owner, destination_id, url, breaker, limit_now, limit_max, reason, status,
       since, told_at)
     select $1, t.*, $2 from unnest($3::int[], $4::text[], $5::text[], $6::int[], $7::int[], $8::text[],
       $9::int[], $10::timestamptz[])
       as t(destination_id, url, breaker, limit_now, limit_max, reason, status, since)
     on conflict (owner, destination_id, url) do update set breaker = excluded.breaker,
       limit_now = excluded.limit_now, limit_max = excluded.limit_max, reason = excluded.reason,
       status = excluded.status, since = excluded.since, told_at = excluded.told_at`,
    [
      owner,
      at,
      held.map(({ destinationId }) => destinationId),
      held.map(({ url }) => urlKey(url)),
      held.map(({ health }) => health.breaker),
      held.map(({ health }) => (health.breaker === 'open' ? 0 : Math.floor(health.limit))),
      held.map(({ health }) => health.cap),
      held.map(({ health }) => health.reason),
      held.map(({ health }) => health.status),
      held.map(({ health }) => new Date(health.since)),
    ],
  )
  // What was not told now is well again, or of a process that died.
  await sql.query(
    'delete from webhook_breaker where (owner = $1 and told_at < $2) or told_at < $3',
    [owner, at, new Date(at.getTime() - forgetAfterMs)],
  )
}
