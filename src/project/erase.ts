// Obeys orders to erase: in the batch they stand in, after its calls, so that what comes later in the log is a new profile.
import { numberList, textList } from '../audience/lists.ts'
import { accountIdsOf, type Plan } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { entombUsers } from '../audience/store.ts'
import { marksOf, untieUsers } from '../audience/ties.ts'
import { type Order, readOrder } from '../domain/erasure.ts'
import { identityKinds } from '../domain/identity.ts'
import type { Connection, Sql } from '../postgres/sql.ts'
import type { Folded, Placed } from './fold.ts'

export type PlacedOrder = Order & Pick<Placed, 'topic' | 'partition' | 'offset'>

export const ordersIn = (calls: readonly Placed[]): readonly PlacedOrder[] =>
  calls.flatMap(({ message, topic, partition, offset }) => {
    const order = readOrder(message)
    return order === null ? [] : [{ ...order, topic, partition, offset }]
  })

type Erasing = {
  readonly orders: readonly PlacedOrder[]
  readonly known: ReadonlyMap<string, number>
  /** As the fold left them. */
  readonly locked: ReadonlyMap<number, UserState>
  readonly folded: Folded
  readonly plan: Plan
}

/** Returns the keys of the users that are no more. */
export const eraseUsers = async (
  tx: Connection,
  { orders, known, locked, folded, plan }: Erasing,
): Promise<readonly number[]> => {
  if (orders.length === 0) return []
  const obeyed = await placeOrders(tx, orders)
  if (obeyed.length === 0) return []
  const into = new Map(folded.vanished.map(({ user, into }) => [user.key, into]))
  const made = new Map(folded.identities.map(({ text, key }) => [text, key]))
  const living = new Map([...locked, ...folded.users.map((user) => [user.key, user] as const)])
  const erased = new Map<UserState, number>()
  for (const { identity, requestId } of obeyed) {
    const key = made.get(identity.text) ?? known.get(identity.text)
    const user = key === undefined ? undefined : living.get(into.get(key) ?? key)
    if (user !== undefined && !erased.has(user)) erased.set(user, requestId)
  }
  const users = [...erased.keys()]
  if (users.length === 0) return []
  const keys = users.map(({ key }) => key)
  await noteProfiles(tx, erased)
  await forgetLeavers(tx, keys)
  await takeIdentities(tx, erased)
  await tx.query('delete from membership where user_key = any($1::bigint[])', [numberList(keys)])
  const marks = users.flatMap((user) => marksOf(user, accountIdsOf(plan, user.workspaceId)))
  await untieUsers(tx, { keys, marks })
  await tx.query('delete from account_visit where user_key = any($1::bigint[])', [numberList(keys)])
  await entombUsers(
    tx,
    users.map((user) => ({ user, into: user.key })),
  )
  return keys
}

/**
 * Those to be obeyed here: an order that was appended twice holds where it was read first, or a profile
 * that was made since would be erased too. The same place is the same order, read again from the start.
 * What its profile was made of is all below the positions as they are by now: whoever writes it otherwise has
 * to wait for this transaction's lock, and then makes a new one.
 */
const placeOrders = async (
  tx: Sql,
  orders: readonly PlacedOrder[],
): Promise<readonly PlacedOrder[]> => {
  const { rows } = await tx.query<{ requestId: number; n: number }>(
    `with p as (
       select jsonb_object_agg(topic || '/' || partition, next::text) as passed
         from position where reader = 'project'
     ), placed as (
       update deletion_subject s
          set topic = o.topic, partition = o.partition, log_offset = o.log_offset, passed = p.passed
         from unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::bigint[])
           as o(request_id, n, topic, partition, log_offset), p
        where s.request_id = o.request_id and s.n = o.n and s.log_offset is null
       returning s.request_id, s.n
     )
     select request_id as "requestId", n from placed
      union
     select s.request_id, s.n from deletion_subject s
       join unnest($1::int[], $2::int[], $3::text[], $4::int[], $5::bigint[])
         as o(request_id, n, topic, partition, log_offset)
         on s.request_id = o.request_id and s.n = o.n and s.topic = o.topic
        and s.partition = o.partition and s.log_offset = o.log_offset`,
    [
      numberList(orders.map(({ requestId }) => requestId)),
      numberList(orders.map(({ n }) => n)),
      textList(orders.map(({ topic }) => topic)),
      numberList(orders.map(({ partition }) => partition)),
      orders.map(({ offset }) => offset),
    ],
  )
  const obeyed = new Set(rows.map(({ requestId, n }) => `${requestId} ${n}`))
  return orders.filter(({ requestId, n }) => obeyed.has(`${requestId} ${n}`))
}

type Erased = ReadonlyMap<UserState, number>

/** For the notices, until the request is over. */
const noteProfiles = async (tx: Sql, erased: Erased): Promise<void> => {
  const users = [...erased.keys()]
  await tx.query(
    `insert into deletion_profile (request_id, user_key, sources)
     select r.id, e.user_key, e.sources::int[]
       from unnest($1::int[], $2::bigint[], $3::text[]) as e(request_id, user_key, sources)
       join deletion_request r on r.id = e.request_id and r.state in ('received', 'running')
     on conflict do nothing`,
    [
      numberList([...erased.values()]),
      numberList(users.map(({ key }) => key)),
      // Arrays of one length are all that unnest takes; each of these has its own.
      users.map(({ sources }) => numberList(sources)),
    ],
  )
}

/** Nobody is told later that they left an audience; while their identities are still there. Index sync_leaver_user. */
const forgetLeavers = async (tx: Sql, keys: readonly number[]): Promise<void> => {
  await tx.query(
    `delete from sync_leaver l using identity i, audience_state a
      where i.user_key = any($1::bigint[]) and i.kind = ${identityKinds.user}
        and l.user_id = i.value collate "C"
        and a.audience_id = l.audience_id and a.workspace_id = i.workspace_id`,
    [numberList(keys)],
  )
}

/** Index identity_user. */
const takeIdentities = async (tx: Sql, erased: Erased): Promise<void> => {
  await tx.query(
    `with e as materialized (
       select * from unnest($1::int[], $2::bigint[]) as e(request_id, user_key)
     ), gone as (
       delete from identity i using e where i.user_key = e.user_key
       returning e.request_id, i.user_key, i.kind, i.value
     )
     insert into deletion_identity (request_id, user_key, kind, value)
     select g.request_id, g.user_key, g.kind, g.value from gone g
       join deletion_request r on r.id = g.request_id and r.state in ('received', 'running')
     on conflict do nothing`,
    [numberList([...erased.values()]), numberList([...erased.keys()].map(({ key }) => key))],
  )
}
