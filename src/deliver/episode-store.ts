// SQL of episodes: which URLs fail, as which process says, and what operators were told of it.
import type { Saying } from '../domain/episode.ts'
import type { Sql } from '../postgres/sql.ts'

export type UrlOf = { readonly destinationId: number; readonly url: string }

export type SayingRow = UrlOf & Saying

const listed = (urls: readonly UrlOf[]) => [
  urls.map(({ destinationId }) => destinationId),
  urls.map(({ url }) => url),
]

/** Held until the transaction ends: of several processes the last one to find a URL well sees that it is the last. */
export const lockSayings = async (
  tx: Sql,
  urls: readonly UrlOf[],
  aliveSince: Date,
): Promise<readonly SayingRow[]> => {
  const { rows } = await tx.query<SayingRow>(
    `select f.destination_id as "destinationId", f.url, f.owner, f.level, f.since, f.told_at as "toldAt",
            exists (select from failing_watch w where w.owner = f.owner and w.seen_at >= $3) as "isAlive"
       from failing_url f
      where (f.destination_id, f.url) in (select * from unnest($1::int[], $2::text[]))
      order by f.destination_id, f.url, f.owner for update`,
    [...listed(urls), aliveSince],
  )
  return rows
}

/** When each of these alerts was last told, where that is known. */
export const readTold = async (
  tx: Sql,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Date>> => {
  if (keys.length === 0) return new Map()
  const { rows } = await tx.query<{ key: string; at: Date }>(
    'select key, told_at as at from operator_alert where key = any($1::text[])',
    [keys],
  )
  return new Map(rows.map(({ key, at }) => [key, at]))
}

/**
 * Nothing that was said is taken back but by its end, and of two sayings the one that was told counts: what operators
 * were not told must not become something they know.
 */
const mergedWith = (other: 'excluded' | 'mine') =>
  `level = case when (f.told_at is null) = (${other}.told_at is null) then greatest(f.level, ${other}.level)
                when f.told_at is null then ${other}.level else f.level end,
   since = least(f.since, ${other}.since), told_at = greatest(f.told_at, ${other}.told_at)`

const merged = `do update set ${mergedWith('excluded')}`

export type Said = UrlOf & {
  readonly level: number
  readonly since: Date
  readonly toldAt: Date | null
}

export const saySo = async (tx: Sql, owner: string, said: readonly Said[]): Promise<void> => {
  if (said.length === 0) return
  await tx.query(
    `insert into failing_url as f (destination_id, url, owner, level, since, told_at)
     select t.destination_id, t.url, $3, t.level, t.since, t.told_at
       from unnest($1::int[], $2::text[], $4::int[], $5::timestamptz[], $6::timestamptz[])
         as t(destination_id, url, level, since, told_at)
      order by t.destination_id, t.url
     on conflict (destination_id, url, owner) ${merged}`,
    [
      ...listed(said),
      owner,
      said.map(({ level }) => level),
      said.map(({ since }) => since),
      said.map(({ toldAt }) => toldAt),
    ],
  )
}

/** It is well for this process: those that go on know what operators know. */
export const leaveSayings = async (
  tx: Sql,
  owner: string,
  urls: readonly UrlOf[],
): Promise<void> => {
  if (urls.length === 0) return
  await tx.query(
    `with mine as (
       delete from failing_url where owner = $3
          and (destination_id, url) in (select * from unnest($1::int[], $2::text[])) returning *
     )
     update failing_url f set ${mergedWith('mine')}
       from mine where f.destination_id = mine.destination_id and f.url = mine.url and f.owner <> $3`,
    [...listed(urls), owner],
  )
}

export const endEpisodes = async (tx: Sql, urls: readonly UrlOf[]): Promise<void> => {
  if (urls.length === 0) return
  await tx.query(
    `delete from failing_url
      where (destination_id, url) in (select * from unnest($1::int[], $2::text[]))`,
    listed(urls),
  )
}

export const watch = async (sql: Sql, owner: string, at: Date): Promise<void> => {
  await sql.query(
    `insert into failing_watch (owner, seen_at) values ($1, $2)
     on conflict (owner) do update set seen_at = excluded.seen_at`,
    [owner, at],
  )
}

export const unwatch = async (sql: Sql, owner: string): Promise<void> => {
  await sql.query('delete from failing_watch where owner = $1', [owner])
}

export type TakenOver = UrlOf & { readonly level: number; readonly toldAt: Date | null }

/** What was said by processes that are gone, of which each is now another one's. */
export const takeOver = async (
  tx: Sql,
  owner: string,
  aliveSince: Date,
): Promise<readonly TakenOver[]> => {
  await tx.query('delete from failing_watch where owner <> $1 and seen_at < $2', [
    owner,
    aliveSince,
  ])
  const { rows } = await tx.query<TakenOver>(
    `with gone as (
       delete from failing_url g where owner <> $1
          and not exists (select from failing_watch w where w.owner = g.owner) returning *
     )
     insert into failing_url as f (destination_id, url, owner, level, since, told_at)
     select destination_id, url, $1, coalesce(max(level) filter (where told_at is not null), max(level)),
            min(since), max(told_at)
       from gone
      group by destination_id, url order by destination_id, url
     on conflict (destination_id, url, owner) ${merged}
     returning f.destination_id as "destinationId", f.url, f.level, f.told_at as "toldAt"`,
    [owner],
  )
  return rows
}

/** All that this process says. */
export const readSayings = async (sql: Sql, owner: string): Promise<readonly TakenOver[]> => {
  const { rows } = await sql.query<TakenOver>(
    `select destination_id as "destinationId", url, level, told_at as "toldAt"
       from failing_url where owner = $1`,
    [owner],
  )
  return rows
}
