// What the admin API reads of usage: calls by day, and who was seen by month, pages and what waits for them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CallType } from '../domain/message.ts'
import { byPage, type Tracked, unite } from '../domain/usage.ts'
import type { Pool, Sql } from '../postgres/sql.ts'

export type CallsOfDay = {
  /** `2026-11-21` */
  readonly day: string
  readonly sourceId: number
  readonly type: CallType
  readonly calls: number
}

type Days = { readonly workspaceId: number; readonly from: string; readonly until: string }

/** By usage_call_pkey; `until` is not included. */
export const loadCalls = async (sql: Sql, days: Days): Promise<readonly CallsOfDay[]> => {
  const { rows } = await sql.query<CallsOfDay>(
    `select to_char(day, 'YYYY-MM-DD') as day, source_id as "sourceId", type,
            sum(calls)::float8 as calls
       from usage_call where workspace_id = $1 and day >= $2::date and day < $3::date
      group by 1, 2, 3 order by 1, 2, 3`,
    [days.workspaceId, days.from, days.until],
  )
  return rows
}

type Months = { readonly workspaceId: number; readonly from: number; readonly until: number }

/** In one snapshot, so that nothing that is being folded counts twice or not at all. `until` is included. */
export const loadTracked = (pool: Pool, months: Months): Promise<ReadonlyMap<number, Tracked>> =>
  pool.transaction(
    async (tx) => {
      const tracked = new Map<number, Tracked>()
      for (const { month, ...sums } of await loadFolded(tx, months)) tracked.set(month, sums)
      for (const [month, entries] of await loadWaiting(tx, months)) {
        const { userIds, anonymousIds } = tracked.get(month) ?? nobody
        const more = await countMore(tx, { workspaceId: months.workspaceId, month, entries })
        tracked.set(month, {
          userIds: userIds + more.userIds,
          anonymousIds: anonymousIds + more.anonymousIds,
        })
      }
      return tracked
    },
    { isolation: 'repeatable read' },
  )

const nobody: Tracked = { userIds: 0, anonymousIds: 0 }

const loadFolded = async (sql: Sql, { workspaceId, from, until }: Months) => {
  const { rows } = await sql.query<Tracked & { month: number }>(
    `select month, sum(user_ids)::float8 as "userIds", sum(anonymous_ids)::float8 as "anonymousIds"
       from usage_page where workspace_id = $1 and month between $2 and $3 group by month`,
    [workspaceId, from, until],
  )
  return rows
}

/** Each id once: the projector keeps what waits small beside what is folded. */
const loadWaiting = async (sql: Sql, { workspaceId, from, until }: Months) => {
  const { rows } = await sql.query<{ month: number; entries: Buffer }>(
    `select month, entries from usage_sighting where workspace_id = $1 and month between $2 and $3`,
    [workspaceId, from, until],
  )
  return [...Map.groupBy(rows, ({ month }) => month)].map(
    ([month, all]) => [month, unite(all.map(({ entries }) => entries)).entries] as const,
  )
}

const pagesAtOnce = 16

type Waiting = { readonly workspaceId: number; readonly month: number; readonly entries: Buffer }

/** What the pages would count beyond what they do, were it folded into them. */
const countMore = async (sql: Sql, { workspaceId, month, entries }: Waiting): Promise<Tracked> => {
  const added = [...byPage(entries)]
  const more = { userIds: 0, anonymousIds: 0 }
  for (let start = 0; start < added.length; start += pagesAtOnce) {
    const part = added.slice(start, start + pagesAtOnce)
    const { rows } = await sql.query<Tracked & { page: number; entries: Buffer }>(
      `select page, entries, user_ids as "userIds", anonymous_ids as "anonymousIds"
         from usage_page where workspace_id = $1 and month = $2 and page = any($3)`,
      [workspaceId, month, part.map(([page]) => page)],
    )
    const pages = new Map(rows.map((row) => [row.page, row]))
    for (const [page, waiting] of part) {
      const held = pages.get(page) ?? { ...nobody, entries: Buffer.alloc(0) }
      const united = unite([held.entries, ...waiting])
      more.userIds += united.userIds - held.userIds
      more.anonymousIds += united.anonymousIds - held.anonymousIds
    }
    await nextTurn()
  }
  return more
}
