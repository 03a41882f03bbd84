// What the admin API reads of the other stages' tables: how audiences stand, users, deliveries.
import { unpackUser } from '../audience/pack.ts'
import { traitsOf } from '../audience/state.ts'
import { identityKinds } from '../domain/identity.ts'
import type { JsonObject } from '../domain/message.ts'
import { traitValues } from '../domain/traits.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Standing } from './views.ts'

/** Reads every membership row of the audiences: for people, not for loops. */
export const loadStandings = async (
  sql: Sql,
  audienceIds: readonly number[],
): Promise<ReadonlyMap<number, Standing>> => {
  const { rows } = await sql.query<Standing & { id: number }>(
    `select wanted.id, coalesce(s.state, 'backfilling') as state,
            coalesce(m.members, 0) as members, coalesce(m.anonymous, 0) as "anonymousMembers"
       from unnest($1::int[]) as wanted(id)
       left join audience_state s on s.audience_id = wanted.id
       left join (select audience_id, count(*)::int as members,
                         count(*) filter (where user_id is null)::int as anonymous
                    from membership where cur and audience_id = any($1) group by audience_id) m
         on m.audience_id = wanted.id`,
    [audienceIds],
  )
  return new Map(rows.map(({ id, ...standing }) => [id, standing]))
}

export type FoundUser = {
  readonly traits: JsonObject
  readonly anonymousIds: readonly string[]
  readonly memberships: readonly {
    readonly audienceId: number
    readonly enteredAt: Date | null
    /** Of a computed trait, as JSON. */
    readonly value: string | null
  }[]
}

type UserRow = {
  readonly key: number
  readonly workspaceId: number
  readonly userId: string | null
  readonly ver: number
  readonly due: number
  readonly st: Buffer
}

const anonymousIdsMax = 100

/** A user id that another was merged into answers with the profile they share. */
export const findUser = async (
  sql: Sql,
  user: { readonly workspaceId: number; readonly userId: string },
): Promise<FoundUser | null> => {
  const { rows } = await sql.query<UserRow>(
    `select u.user_key::float8 as key, u.workspace_id as "workspaceId", u.user_id as "userId",
            u.ver::float8 as ver, 'Infinity'::float8 as due, u.st
       from identity i join ustate u on u.user_key = i.user_key
      where i.workspace_id = $1 and i.kind = ${identityKinds.user} and i.value = $2 and u.merged_into is null`,
    [user.workspaceId, user.userId],
  )
  const [row] = rows
  if (!row) return null
  const { rows: anonymous } = await sql.query<{ value: string }>(
    `select value from identity where user_key = $1 and kind = ${identityKinds.anonymous}
      order by value limit ${anonymousIdsMax}`,
    [row.key],
  )
  const { rows: memberships } = await sql.query<FoundUser['memberships'][number]>(
    `select audience_id as "audienceId", entered_at as "enteredAt", value
       from membership where user_key = $1 and audience_id = any($2) and cur order by audience_id`,
    [row.key, await audienceIdsOf(sql, user.workspaceId)],
  )
  return {
    traits: traitValues(traitsOf(unpackUser(row))),
    anonymousIds: anonymous.map(({ value }) => value),
    memberships,
  }
}

/** The primary key of membership begins with the audience: naming them makes it a few probes. */
const audienceIdsOf = async (sql: Sql, workspaceId: number): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ id: number }>(
    'select id from audience where workspace_id = $1',
    [workspaceId],
  )
  return rows.map(({ id }) => id)
}

export type DeliveryCounts = { readonly parked: number; readonly dead: number }

/** Parked rows partition by partition, as their index is; of the dead those that were not sent again. */
export const countDeliveries = async (sql: Sql, destinationId: number): Promise<DeliveryCounts> => {
  const { rows } = await sql.query<DeliveryCounts>(
    `select (select coalesce(sum(c.parked), 0) from position h cross join lateral (
              select count(*) as parked from parked p where p.topic = h.topic
                 and p.partition = h.partition and p.destination_id = $1) c
              where h.reader = 'deliver')::int as parked,
            (select count(*) from dead where destination_id = $1 and replayed_at is null)::int as dead`,
    [destinationId],
  )
  return rows[0] ?? { parked: 0, dead: 0 }
}

export type AttemptRow = {
  readonly startedAt: Date
  readonly messageId: string
  readonly attempt: number
  readonly url: string
  readonly durationMs: number
  readonly outcome: string
  readonly reason: string | null
  readonly status: number | null
  readonly responseHead: string | null
}

/** Newest first, from `since` on: the table is found by time, block range by block range. */
export const loadAttempts = async (
  sql: Sql,
  page: { readonly destinationId: number; readonly since: Date; readonly limit: number },
): Promise<readonly AttemptRow[]> => {
  const { rows } = await sql.query<AttemptRow>(
    `select started_at as "startedAt", message_id as "messageId", attempt, url,
            duration_ms as "durationMs", outcome, reason, status, response_head as "responseHead"
       from attempt where destination_id = $1 and started_at >= $2
      order by started_at desc, log_offset desc limit $3`,
    [page.destinationId, page.since, page.limit],
  )
  return rows
}
