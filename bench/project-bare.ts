// The bare upsert of the project bench: rows as wide as the projector's, in transactions of as many.
import { copyRows } from '../src/audience/copy.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { projectLimits } from '../src/project/project.ts'
import { stride } from './project-scene.ts'

const batchRows = projectLimits.batchCallsMax

type Bare = { readonly users: number; readonly width: number }

const rowOf = (key: number, width: number) => ({
  key,
  shard: key % 64,
  workspaceId: 1,
  ver: key,
  userId: `user-${key}`,
  st: 'x'.repeat(width),
  due: 1_800_000_000_000,
  mergedInto: null,
})

const upsert = (pool: Pool, rows: readonly ReturnType<typeof rowOf>[]) =>
  pool.transaction(async (tx) => {
    await tx.query('create temp table if not exists bare_in (like bare) on commit delete rows')
    await tx.copyIn('copy bare_in from stdin (format binary)', copyRows(rows))
    await tx.query(
      `insert into bare select * from bare_in
       on conflict (user_key) do update
         set (ver, user_id, st, due) = (excluded.ver, excluded.user_id, excluded.st, excluded.due)`,
    )
  })

const makeBare = async (pool: Pool): Promise<void> => {
  await pool.query(
    `create table bare (user_key bigint primary key, shard smallint, workspace_id int, ver bigint,
       user_id text, st bytea, due timestamptz, merged_into bigint) with (fillfactor = 75)`,
  )
}

export const loadBare = async (pool: Pool, { users, width }: Bare): Promise<void> => {
  await makeBare(pool)
  for (let first = 1; first <= users; first += batchRows)
    await upsert(
      pool,
      Array.from({ length: Math.min(batchRows, users - first + 1) }, (_, at) =>
        rowOf(first + at, width),
      ),
    )
  await pool.query('vacuum analyze bare')
}

/** As new. */
export const emptyBare = async (pool: Pool): Promise<void> => {
  await pool.query('drop table if exists bare')
  await makeBare(pool)
}

type Part = Bare & { readonly first: number; readonly count: number }

export const upsertBare = (pool: Pool, { first, count, users, width }: Part): Promise<void> =>
  upsert(
    pool,
    Array.from({ length: count }, (_, at) => rowOf((((first + at) * stride) % users) + 1, width)),
  )

let number = 0

/** The same walk over the users as the product's. */
export const upsertFor = async (
  pool: Pool,
  { users, width, seconds }: Bare & { readonly seconds: number },
): Promise<{ readonly rows: number; readonly seconds: number }> => {
  const began = performance.now()
  let rows = 0
  while (performance.now() - began < seconds * 1_000) {
    await upsert(
      pool,
      Array.from({ length: batchRows }, () => rowOf(((number++ * stride) % users) + 1, width)),
    )
    rows += batchRows
  }
  return { rows, seconds: (performance.now() - began) / 1_000 }
}
