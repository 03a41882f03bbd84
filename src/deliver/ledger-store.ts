// The ledger's SQL: amounts written with the rows they are about, and all that is needed to balance it.
import { placeOf, type Topic } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'

/** What a transaction did for one destination of a partition. */
export type Entry = {
  readonly topic: Topic
  readonly partition: number
  readonly destinationId: number
  readonly taken?: number
  readonly delivered?: number
  readonly dead?: number
  readonly cancelled?: number
  readonly recovered?: number
  readonly repeated?: number
  /** Of bodies kept: more or fewer. */
  readonly bytes?: number
}

const amounts = [
  'taken',
  'delivered',
  'dead',
  'cancelled',
  'recovered',
  'repeated',
  'bytes',
] as const

/** One entry for each destination of a partition. */
export const total = (entries: readonly Entry[]): readonly Entry[] => {
  if (entries.length < 2) return entries
  const totals = new Map<string, Entry>()
  for (const entry of entries) {
    const key = `${placeOf(entry)} ${entry.destinationId}`
    const known = totals.get(key)
    totals.set(key, known ? add(known, entry) : entry)
  }
  return [...totals.values()]
}

const add = (a: Entry, b: Entry): Entry => {
  const { topic, partition, destinationId } = a
  const sums = amounts.map((amount) => [amount, (a[amount] ?? 0) + (b[amount] ?? 0)])
  return { topic, partition, destinationId, ...Object.fromEntries(sums) }
}

/** In the transaction of what it counts. Only the owner of a partition writes its rows. */
export const addToLedger = async (tx: Sql, entries: readonly Entry[]): Promise<void> => {
  const totals = total(entries)
  if (totals.length === 0) return
  await tx.query(
    `insert into delivery_ledger as l (topic, partition, destination_id,
       taken, delivered, dead, cancelled, recovered, repeated, body_bytes)
     select * from unnest($1::text[], $2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[],
       $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
     on conflict (topic, partition, destination_id) do update set
       taken = l.taken + excluded.taken, delivered = l.delivered + excluded.delivered,
       dead = l.dead + excluded.dead, cancelled = l.cancelled + excluded.cancelled,
       recovered = l.recovered + excluded.recovered, repeated = l.repeated + excluded.repeated,
       body_bytes = l.body_bytes + excluded.body_bytes`,
    [
      totals.map(({ topic }) => topic),
      totals.map(({ partition }) => partition),
      totals.map(({ destinationId }) => destinationId),
      ...amounts.map((amount) => totals.map((entry) => entry[amount] ?? 0)),
    ],
  )
}

/** What a partition's rows amount to by the ledger, and what of them is not yet in its position. */
export const loadTaken = async (
  sql: Sql,
  at: { readonly topic: Topic; readonly partition: number },
): Promise<{ readonly taken: bigint; readonly recovered: bigint; readonly repeated: bigint }> => {
  const { rows } = await sql.query<{ taken: bigint; recovered: bigint; repeated: bigint }>(
    `select coalesce(sum(taken), 0)::bigint as taken, coalesce(sum(recovered), 0)::bigint as recovered,
            coalesce(sum(repeated), 0)::bigint as repeated
       from delivery_ledger where topic = $1 and partition = $2`,
    [at.topic, at.partition],
  )
  return rows[0] ?? { taken: 0n, recovered: 0n, repeated: 0n }
}

export type LedgerRow = {
  readonly topic: Topic
  readonly partition: number
  readonly state: Buffer | null
  readonly next: bigint
  readonly taken: bigint
  readonly delivered: bigint
  readonly dead: bigint
  readonly cancelled: bigint
  readonly recovered: bigint
  readonly repeated: bigint
  readonly parked: bigint
}

/** Rows parked of one reason in a partition, as counted. */
export type Held = {
  readonly topic: Topic
  readonly partition: number
  readonly reason: string
  readonly rows: number
  readonly oldest: Date
  readonly firstTry: Date | null
}

/** Reads every row parked: seconds of work where there are millions. */
export const countHeld = async (sql: Sql): Promise<readonly Held[]> => {
  const { rows } = await sql.query<Held>(
    `select topic, partition, reason, count(*)::float8 as rows, min(parked_at) as oldest,
            min(first_try_at) as "firstTry"
       from parked group by 1, 2, 3`,
  )
  return rows
}

const counted = `select topic, partition, count(*) as parked from parked group by 1, 2`
const given = `select topic, partition, sum(rows)::bigint as parked
                 from unnest($1::text[], $2::int[], $3::bigint[]) as h(topic, partition, rows) group by 1, 2`

/**
 * Everything of one snapshot: the rows parked are counted, not remembered. That is one statement, unless the
 * transaction counted them before and lets no later change be seen.
 */
export const loadLedgerRows = async (
  sql: Sql,
  held: readonly Held[] | null = null,
): Promise<readonly LedgerRow[]> => {
  const { rows } = await sql.query<LedgerRow>(
    `with ledger as (
       select topic, partition, sum(taken)::bigint as taken, sum(delivered)::bigint as delivered,
         sum(dead)::bigint as dead, sum(cancelled)::bigint as cancelled,
         sum(recovered)::bigint as recovered, sum(repeated)::bigint as repeated
       from delivery_ledger group by 1, 2
     ), held as (
       ${held ? given : counted}
     ), read as (
       select topic, partition, next, state from position where reader = 'deliver'
     )
     select topic, partition, r.state, coalesce(r.next, 0) as next,
       coalesce(l.taken, 0) as taken, coalesce(l.delivered, 0) as delivered,
       coalesce(l.dead, 0) as dead, coalesce(l.cancelled, 0) as cancelled,
       coalesce(l.recovered, 0) as recovered, coalesce(l.repeated, 0) as repeated,
       coalesce(h.parked, 0) as parked
     from ledger l full join held h using (topic, partition) full join read r using (topic, partition)
     order by topic, partition`,
    held
      ? [
          held.map(({ topic }) => topic),
          held.map(({ partition }) => partition),
          held.map(({ rows: amount }) => amount),
        ]
      : [],
  )
  return rows
}

export type Usage = {
  readonly destinationId: number
  readonly rows: bigint
  readonly bytes: bigint
}

/** What is parked by destination in all partitions, of those that come near their quota. */
export const loadUsage = async (
  sql: Sql,
  from: { readonly rows: number; readonly bytes: number },
): Promise<readonly Usage[]> => {
  const { rows } = await sql.query<Usage>(
    `select destination_id as "destinationId",
            sum(taken - delivered - dead - cancelled)::bigint as rows, sum(body_bytes)::bigint as bytes
       from delivery_ledger group by 1
     having sum(taken - delivered - dead - cancelled) >= $1 or sum(body_bytes) >= $2`,
    [from.rows, from.bytes],
  )
  return rows
}
