// The SQL of runs and schedules.
import type { Sql } from '../postgres/sql.ts'
import { instantSql, positionsSql } from './chunk-store.ts'
import { syncEndedChannel } from './request.ts'

export type PendingRun = {
  readonly id: number
  readonly state: 'requested' | 'running'
  readonly audienceIds: readonly number[]
  readonly barrier: readonly bigint[] | null
}

/** Interrupted runs first, then requests, oldest first. */
export const pendingRuns = async (sql: Sql, limit: number): Promise<readonly PendingRun[]> => {
  const { rows } = await sql.query<Omit<PendingRun, 'barrier'> & { barrier: string[] | null }>(
    `select id::float8 as id, state, audience_ids as "audienceIds", barrier::text[] as barrier
       from sync_run where state in ('requested', 'running')
      order by state = 'requested', id limit $1`,
    [limit],
  )
  return rows.map((row) => ({ ...row, barrier: row.barrier?.map(BigInt) ?? null }))
}

export type AudienceRow = {
  readonly audienceId: number
  /** Of the definition with complete membership. */
  readonly version: string | null
  readonly syncedVersion: string | null
  readonly slot: number | null
  readonly startedAt: Date | null
}

/** Which audiences have complete membership, and when each was last synced. */
export const readAudiences = async (sql: Sql): Promise<readonly AudienceRow[]> => {
  const { rows } = await sql.query<AudienceRow>(
    `select a.audience_id as "audienceId", a.version::text as version,
            s.version as "syncedVersion", s.slot::float8 as slot, s.started_at as "startedAt"
       from audience_state a left join sync_schedule s using (audience_id)
      where a.state = 'live'`,
  )
  return rows
}

export type Opening = {
  /** `null` makes a run of the schedule's own. */
  readonly id: number | null
  readonly epoch: bigint
  readonly at: Date
  readonly barrier: readonly bigint[]
  readonly slots: readonly {
    readonly audienceId: number
    readonly version: string
    readonly slot: number
    readonly nextSyncAt: Date
  }[]
  /** Of these audiences, those that are on. */
  readonly destinations: readonly Pair[]
  /** Those that are off: what they were told is remembered. */
  readonly away: readonly Pair[]
}

type Pair = { readonly audienceId: number; readonly destinationId: number }

/**
 * Starts a run and moves its audiences to their next slots, in one statement; `null` when fenced.
 * A destination that joins an audience synced before is to be told of all its members first; one that
 * was off missed changes, and is told of all as well, after who left meanwhile.
 */
export const openRun = async (sql: Sql, opening: Opening): Promise<number | null> => {
  const { rows } = await sql.query<{ id: number }>(
    `with held as (
       select 1 from relay where epoch = $1
     ), slots as (
       insert into sync_schedule as s (audience_id, version, slot, started_at, next_sync_at)
       select u.audience_id, u.version, u.slot, $2, u.next_sync_at
         from held, unnest($5::int[], $6::text[], $7::bigint[], $8::timestamptz[])
           as u(audience_id, version, slot, next_sync_at)
       on conflict (audience_id) do update
         set (version, slot, started_at, next_sync_at)
           = (excluded.version, excluded.slot, excluded.started_at, excluded.next_sync_at)
     ), wanted as (
       select w.* from held, unnest($9::int[], $10::int[]) as w(audience_id, destination_id)
     ), away as (
       select w.* from held, unnest($11::int[], $12::int[]) as w(audience_id, destination_id)
     ), stayed as (
       update sync_destination d set after = 0 from away a
        where (d.audience_id, d.destination_id) = (a.audience_id, a.destination_id)
     ), gone as (
       delete from sync_destination d using held
        where d.audience_id = any($5)
          and (d.audience_id, d.destination_id) not in (table wanted union all table away)
       returning d.audience_id, d.destination_id
     ), forgotten as (
       delete from sync_leaver l using gone g
        where (l.audience_id, l.destination_id) = (g.audience_id, g.destination_id)
     ), joined as (
       insert into sync_destination (audience_id, destination_id, after)
       select w.audience_id, w.destination_id, case when s.audience_id is null then null else 0 end
         from wanted w left join sync_schedule s on s.audience_id = w.audience_id
       on conflict do nothing
     ), asked as (
       update sync_run set (state, started_at, barrier, audience_ids) = ('running', $2, $3, $5)
         from held where id = $4 and state = 'requested' returning id
     ), made as (
       insert into sync_run (state, audience_ids, started_at, barrier)
       select 'running', $5, $2, $3 from held where $4::bigint is null returning id
     )
     select id::float8 as id from asked union all select id::float8 from made`,
    [
      opening.epoch,
      opening.at,
      opening.barrier,
      opening.id,
      opening.slots.map(({ audienceId }) => audienceId),
      opening.slots.map(({ version }) => version),
      opening.slots.map(({ slot }) => slot),
      opening.slots.map(({ nextSyncAt }) => nextSyncAt),
      opening.destinations.map(({ audienceId }) => audienceId),
      opening.destinations.map(({ destinationId }) => destinationId),
      opening.away.map(({ audienceId }) => audienceId),
      opening.away.map(({ destinationId }) => destinationId),
    ],
  )
  return rows[0]?.id ?? null
}

/** By partition of `calls`; a partition never gained has no row. */
export const projectedCalls = async (sql: Sql): Promise<ReadonlyMap<number, bigint>> => {
  const { rows } = await sql.query<{ partition: number; next: bigint }>(
    `select partition, next from position where reader = 'project' and topic = 'calls'`,
  )
  return new Map(rows.map(({ partition, next }) => [partition, next]))
}

type Look = {
  readonly runId: number
  readonly now: Date
  readonly shards: number
  readonly audienceIds: readonly number[]
}

/**
 * The shards with anything due or unsynced. One statement, one snapshot: the instant and positions
 * it records hold for every shard it does not return. Two index probes a shard.
 */
export const openShards = async (sql: Sql, look: Look): Promise<readonly number[]> => {
  const { rows } = await sql.query<{ shard: number }>(
    `with instant as materialized (select ${instantSql('$2')} as at
     ), opened as (
       insert into sync_chunk (run_id, shard, chunk, at, positions, users, emitted)
       select $1, -1, (select count(*) from sync_chunk where run_id = $1 and shard = -1), at,
              ${positionsSql}, 0, 0
         from instant
     )
     select s.shard from generate_series(0, $3 - 1) as s(shard), instant
      where exists (select 1 from ustate u where u.shard = s.shard and u.due <= instant.at)
         or exists (select 1 from membership m
                     where m.shard = s.shard and m.audience_id = any($4)
                       and (m.cur is distinct from m.synced or m.value is distinct from m.synced_value)
                       and m.user_id is not null)
      order by s.shard`,
    [look.runId, look.now, look.shards, look.audienceIds],
  )
  return rows.map(({ shard }) => shard)
}

type Ending = {
  readonly id: number
  readonly epoch: bigint
  readonly at: Date
  readonly state: 'finished' | 'failed'
  readonly reason: string | null
}

export const endRun = async (sql: Sql, ending: Ending): Promise<void> => {
  await sql.query(
    `with ended as (
       update sync_run set (state, finished_at, reason) = ($2, $3, $4)
        where id = $1 and state in ('requested', 'running')
          and exists (select 1 from relay where epoch = $5)
       returning id
     )
     select pg_notify('${syncEndedChannel}', id::text) from ended`,
    [ending.id, ending.state, ending.at, ending.reason, ending.epoch],
  )
}

/** Records of runs before `id`, chunks first. */
export const forgetRuns = async (sql: Sql, id: number): Promise<void> => {
  await sql.query('delete from sync_chunk where run_id < $1', [id])
  await sql.query(`delete from sync_run where id < $1 and state in ('finished', 'failed')`, [id])
}
