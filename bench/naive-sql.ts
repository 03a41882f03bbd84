// The audiences of the project benches as SQL over a table of events: each one statement, compared with what
// it gave the last time.
import type { Pool } from '../src/postgres/sql.ts'
import { dayMs, type Event, type Shop, traitOf } from './naive-scene.ts'

const minuteMs = 60_000
const hourMs = 3_600_000

export const createTables = async (pool: Pool, shop: Shop): Promise<void> => {
  await pool.query(
    `create table naive_event (name smallint not null, user_key int not null, te bigint not null,
       price int not null, quantity int not null, cart smallint not null, plan text not null)`,
  )
  await pool.query('create table naive_user (user_key int primary key, plan text not null)')
  const users = Array.from({ length: shop.users }, (_, at) => at + 1)
  for (let first = 0; first < users.length; first += 50_000) {
    const some = users.slice(first, first + 50_000)
    await pool.query('insert into naive_user select * from unnest($1::int[], $2::text[])', [
      some,
      some.map(traitOf),
    ])
  }
  await pool.query(
    `create table naive_member (audience int, user_key int, value int, primary key (audience, user_key))`,
  )
}

export const insertEvents = async (pool: Pool, events: readonly Event[]): Promise<void> => {
  await pool.query(
    `insert into naive_event
     select * from unnest($1::int[], $2::int[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::text[])`,
    [
      events.map(({ name }) => name),
      events.map(({ user }) => user),
      events.map(({ te }) => te),
      events.map(({ price }) => price),
      events.map(() => 1),
      events.map(({ cart }) => cart),
      events.map(({ plan }) => plan),
    ],
  )
}

/** Both cover their queries; the second finds what one user did after an instant. */
export const indexEvents = async (pool: Pool): Promise<void> => {
  await pool.query(
    'create index on naive_event (name, te) include (user_key, price, quantity, plan, cart)',
  )
  await pool.query('create index on naive_event (name, user_key, te) include (cart)')
}

/** As often as a well kept database would: both contenders find their tables vacuumed. */
export const tidy = async (pool: Pool): Promise<void> => {
  await pool.query('vacuum analyze naive_event, naive_user, naive_member')
}

/** Recomputes each audience as of an instant and writes what changed; returns how much did. */
export const recompute = async (pool: Pool, at: number): Promise<number> => {
  let changed = 0
  for (const [audience, query] of queriesAt(at).entries()) {
    const { rows } = await pool.query<{ changed: number }>(
      `with found as materialized (${query}),
       gone as (
         delete from naive_member m where audience = ${audience + 1}
            and not exists (select from found f where f.user_key = m.user_key) returning 1
       ), put as (
         insert into naive_member
         select ${audience + 1}, f.user_key, f.value
           from found f left join naive_member m
             on m.audience = ${audience + 1} and m.user_key = f.user_key
          where m.user_key is null or m.value is distinct from f.value
         on conflict (audience, user_key) do update set value = excluded.value returning 1
       )
       select ((select count(*) from gone) + (select count(*) from put))::int as changed`,
    )
    changed += rows[0]?.changed ?? 0
  }
  return changed
}

/** The far end of a window moves on the grid of its length, as the definitions say. */
const tail = (at: number, lengthMs: number, gridMs: number): number =>
  (Math.floor(at / gridMs) - lengthMs / gridMs + 1) * gridMs

const queriesAt = (at: number): readonly string[] => {
  const [order, view, add, sign, change] = [0, 1, 2, 3, 4]
  const quarter = tail(at, 90 * dayMs, hourMs)
  const month = tail(at, 30 * dayMs, hourMs)
  const week = tail(at, 7 * dayMs, hourMs)
  const late = tail(at, 36 * hourMs, minuteMs)
  const year = tail(at, 365 * dayMs, dayMs)
  const events = (name: number | undefined, from: number) =>
    `from naive_event where name = ${name} and te >= ${from}`
  const whose = (having: string, from: string) =>
    `select user_key, null::int as value ${from} group by user_key having ${having}`
  const days = 'count(distinct te / 86400000)'
  const ordered = whose('count(*) >= 2', events(order, quarter))
  const signed = whose('count(*) >= 1', events(sign, late))
  const everyone = 'select user_key, null::int as value from naive_user'
  const lastPlan = (holds: string) =>
    `select user_key, null::int as value from (
       select distinct on (user_key) user_key, plan ${events(change, year)} order by user_key, te desc
     ) l where plan ${holds}`
  const changed = `select distinct user_key, null::int as value ${events(change, 0)}`
  const chain = (from: number, until: number, did: string) =>
    `select distinct a.user_key, null::int as value from naive_event a
      where a.name = ${add} and a.te >= ${from} and a.te <= ${until} and ${did} (
        select from naive_event b where b.name = ${order} and b.user_key = a.user_key
           and b.cart = a.cart and b.te > a.te and b.te <= a.te + ${dayMs})`
  const dublin = `(extract(epoch from (date_trunc('day', to_timestamp(${at} / 1000.0)
     at time zone 'Europe/Dublin') - interval '6 days') at time zone 'Europe/Dublin') * 1000)::bigint`
  const both = (left: string, right: string) => `(${left}) intersect (${right})`
  // From 1 day to 30 days old, on the hour.
  const aged = `${events(add, month)} and te < ${tail(at, dayMs, hourMs)}`
  return [
    ordered,
    whose('sum(price) >= 200', events(order, month)),
    `${everyone} except select user_key, null ${events(order, quarter)}`,
    both(
      whose('count(*) >= 4', events(order, quarter)),
      whose('sum(price) >= 100', events(order, month)),
    ),
    whose(`${days} >= 3`, events(view, month)),
    whose('count(*) >= 2', `${events(view, month)} and price >= 50`),
    `select distinct user_key, null::int as value from naive_event where name = ${view} and te >= ${dublin}`,
    `(${whose(`${days} >= 5`, events(view, month))}) union (${whose('avg(price) >= 110', events(view, quarter))})`,
    chain(week, at - dayMs, 'not exists'),
    chain(month, at, 'exists'),
    whose('count(*) >= 2', events(add, quarter)),
    both(whose('count(*) >= 1', events(add, quarter)), whose('sum(quantity) >= 2', aged)),
    whose('count(*) >= 2', events(sign, late)),
    whose(`${days} >= 10`, events(sign, quarter)),
    both(`${everyone} where plan = 'gold'`, signed),
    `(${ordered}) except (${signed})`,
    lastPlan("= 'gold'"),
    changed,
    both(whose('max(price) >= 120', events(order, quarter)), lastPlan("<> 'free'")),
    both(
      `select user_key, null::int as value from (
         select user_key, count(*) filter (where name = ${view}) as views,
                count(*) filter (where name = ${order}) as orders
           from naive_event where name in (${order}, ${view}) and te >= ${quarter} group by user_key
       ) c where views > orders`,
      changed,
    ),
    `select user_key, max(price) as value ${events(order, quarter)} group by user_key`,
  ]
}
