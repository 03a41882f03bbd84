// What waits for another try, of erased users: listed for the owners of its partitions, who give it up.
import type { Connection, Pool, Sql } from '../postgres/sql.ts'
import { type Forgotten, isOf, type Kept, names } from './forgotten.ts'

type Row = Kept & { readonly id: bigint }

const pageRows = 500

/** Reads all that is parked; its cost is what is parked. */
export const listParked = async (pool: Pool, forgotten: Forgotten): Promise<number> => {
  let listed = 0
  for (let after = 0n; ; ) {
    const { rows } = await pool.query<Row>(
      `select p.id, p.type, p.chain, b.bytes as body,
              d.workspace_id as "workspaceId"
         from parked p
         left join parked_body b on b.body_id = p.body_id and b.created_at = p.body_at
         left join destination d on d.id = p.destination_id
        where p.id > $1 order by p.id limit ${pageRows}`,
      [after],
    )
    const ids = rows.filter((row) => isOf(forgotten, row)).map(({ id }) => id)
    if (ids.length > 0) await list(pool, ids)
    listed += ids.length
    if (rows.length < pageRows) return listed
    after = (rows.at(-1) as Row).id
  }
}

const list = (sql: Sql, ids: readonly bigint[]) =>
  sql.query('insert into parked_erasure select unnest($1::bigint[]) on conflict do nothing', [ids])

/** What is listed and not given up yet. What left by itself is taken off the list. */
export const countListed = async (sql: Sql): Promise<number> => {
  await sql.query(
    'delete from parked_erasure e where not exists (select from parked p where p.id = e.parked_id)',
  )
  const { rows } = await sql.query<{ count: number }>(
    'select count(*)::int as count from parked_erasure',
  )
  return rows[0]?.count ?? 0
}

/**
 * Where no process delivers, nobody has what is parked in mind: it can be taken away. Whoever gains a
 * partition meanwhile waits for the lock, and counts what is left.
 */
export const takeListed = async (
  tx: Connection,
  aliveSince: Date,
): Promise<'taken' | 'delivered by others'> => {
  await tx.query(
    `select from position where reader = 'deliver' order by topic, partition for update`,
  )
  const { rows } = await tx.query<{ has: boolean }>(
    `select exists (select from process where 'deliver' = any(roles) and beat_at >= $1) as has`,
    [aliveSince],
  )
  if (rows[0]?.has === true) return 'delivered by others'
  await tx.query(
    `with gone as (
       delete from parked p using parked_erasure e where p.id = e.parked_id
       returning p.topic, p.partition, p.destination_id, p.body_bytes
     )
     insert into delivery_ledger as l (topic, partition, destination_id, cancelled, body_bytes)
     select topic, partition, destination_id, count(*), -sum(body_bytes) from gone group by 1, 2, 3
     on conflict (topic, partition, destination_id) do update set
       cancelled = l.cancelled + excluded.cancelled, body_bytes = l.body_bytes + excluded.body_bytes`,
  )
  return 'taken'
}

type Body = { readonly id: bigint; readonly bytes: Buffer }

/** Bodies outlive their rows until their hour is dropped; those that no row refers to go now. */
export const eraseBodies = async (pool: Pool, forgotten: Forgotten): Promise<number> => {
  let erased = 0
  for (let after = 0n; ; ) {
    const { rows } = await pool.query<Body>(
      `select body_id as id, bytes from parked_body
        where body_id > $1 order by body_id limit ${pageRows}`,
      [after],
    )
    const ids = rows.filter(({ bytes }) => names(forgotten, bytes)).map(({ id }) => id)
    if (ids.length > 0) {
      const { rowCount } = await pool.query(
        `delete from parked_body b where b.body_id = any($1::bigint[])
            and not exists (select from parked p where p.body_id = b.body_id)`,
        [ids],
      )
      erased += rowCount ?? 0
    }
    if (rows.length < pageRows) return erased
    after = (rows.at(-1) as Body).id
  }
}

/** With what recoveries count of them, as when they had grown old. */
export const eraseDead = async (pool: Pool, forgotten: Forgotten): Promise<number> => {
  let erased = 0
  for (let after = 0n; ; ) {
    const { rows } = await pool.query<Row>(
      `select t.id, t.type, t.chain, t.body, d.workspace_id as "workspaceId"
         from dead t left join destination d on d.id = t.destination_id
        where t.id > $1 order by t.id limit ${pageRows}`,
      [after],
    )
    const ids = rows.filter((row) => isOf(forgotten, row)).map(({ id }) => id)
    if (ids.length > 0) {
      const { rows: gone } = await pool.query<{ count: number }>(
        `with gone as (
           delete from dead where id = any($1::bigint[]) returning recovery_id, replayed_at
         ), counted as (
           update recovery r set passed_on = r.passed_on + t.amount
             from (select recovery_id, count(*) as amount from gone
                    where recovery_id is not null and replayed_at is null group by 1) t
            where r.id = t.recovery_id
         )
         select count(*)::int as count from gone`,
        [ids],
      )
      erased += gone[0]?.count ?? 0
    }
    if (rows.length < pageRows) return erased
    after = (rows.at(-1) as Row).id
  }
}
