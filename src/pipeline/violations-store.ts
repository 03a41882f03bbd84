// The SQL of counted violations: saved in a transaction of their own, read by the admin API.
import { ownKinds } from '../domain/tracking-plan.ts'
import type { Connection, Pool, Sql } from '../postgres/sql.ts'

/** Times in epoch ms; the day in UTC, `2026-03-01`. */
export type ViolationCount = {
  readonly sourceId: number
  readonly day: string
  readonly event: string
  readonly path: string
  readonly kind: string
  readonly calls: number
  readonly firstAt: number
  readonly lastAt: number
}

/** Distinct violations stay within their limit whichever process saves them: one saves at a time. */
export const saveViolations = (
  pool: Pool,
  counts: readonly ViolationCount[],
  distinctMax: number,
): Promise<void> =>
  pool.transaction(async (tx) => {
    await tx.query('lock table plan_violation in share row exclusive mode')
    const stored = await storedRows(tx, counts)
    const rows = counts.map((count) => {
      const group = groupOf(count)
      const known = stored.get(group) ?? new Set()
      stored.set(group, known)
      const name = nameOf(count)
      if (!known.has(name) && known.size >= distinctMax) return asOther(count)
      known.add(name)
      return count
    })
    await upsert(tx, rows)
  })

/** What has no row of its own is told of by one for all. */
export const asOther = (count: ViolationCount): ViolationCount => ({
  ...count,
  event: '',
  path: '',
  kind: ownKinds.other,
})

const groupOf = ({ sourceId, day }: ViolationCount) => `${sourceId} ${day}`

const nameOf = ({ event, path, kind }: Pick<ViolationCount, 'event' | 'path' | 'kind'>) =>
  JSON.stringify([event, path, kind])

const storedRows = async (
  tx: Connection,
  counts: readonly ViolationCount[],
): Promise<Map<string, Set<string>>> => {
  const groups = [...new Map(counts.map((count) => [groupOf(count), count])).values()]
  const { rows } = await tx.query<ViolationCount>(
    `select v.source_id as "sourceId", v.day::text as day, v.event, v.path, v.kind
       from plan_violation v
       join unnest($1::int[], $2::date[]) as g(source_id, day)
         on v.source_id = g.source_id and v.day = g.day`,
    [groups.map(({ sourceId }) => sourceId), groups.map(({ day }) => day)],
  )
  const stored = new Map<string, Set<string>>()
  for (const row of rows) {
    const names = stored.get(groupOf(row)) ?? new Set()
    stored.set(groupOf(row), names.add(nameOf(row)))
  }
  return stored
}

/** Summed before it is written: several that had no room share a row, which one statement may touch once. */
const upsert = async (tx: Connection, rows: readonly ViolationCount[]): Promise<void> => {
  const column = <K extends keyof ViolationCount>(key: K) => rows.map((row) => row[key])
  const instants = (key: 'firstAt' | 'lastAt') => rows.map((row) => new Date(row[key]))
  await tx.query(
    `insert into plan_violation as v (day, source_id, event, path, kind, calls, first_at, last_at)
     select day, source_id, event, path, kind, sum(calls), min(first_at), max(last_at)
       from unnest($1::date[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[],
                   $7::timestamptz[], $8::timestamptz[])
         as g(day, source_id, event, path, kind, calls, first_at, last_at)
      group by day, source_id, event, path, kind
         on conflict (day, source_id, event, path, kind) do update
        set calls = v.calls + excluded.calls,
            first_at = least(v.first_at, excluded.first_at),
            last_at = greatest(v.last_at, excluded.last_at)`,
    [
      column('day'),
      column('sourceId'),
      column('event'),
      column('path'),
      column('kind'),
      column('calls'),
      instants('firstAt'),
      instants('lastAt'),
    ],
  )
}

export const deleteViolations = async (sql: Sql, before: Date): Promise<void> => {
  await sql.query(
    `delete from plan_violation where day < ($1::timestamptz at time zone 'utc')::date`,
    [before],
  )
}
