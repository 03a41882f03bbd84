// The past of the naive bench as the engine would hold it: each user's events folded by the engine's own rules,
// and written once. Call by call, ten million of them would take longer than all that is measured.
import { assess } from '../src/audience/assess.ts'
import { numberList, textList } from '../src/audience/lists.ts'
import { loadPlan, type Plan } from '../src/audience/plan.ts'
import { newUser, seeSource, setTraits, type UserState } from '../src/audience/state.ts'
import { prepareSession, saveUsers } from '../src/audience/store.ts'
import { admits } from '../src/domain/condition/evaluate.ts'
import type { Pool, Sql } from '../src/postgres/sql.ts'
import { observe } from '../src/project/fold.ts'
import { type Event, pastDays, propertiesOf, type Shop, traitsOf } from './naive-scene.ts'

const usersAtOnce = 10_000

/** Everybody has been told of everything by then. */
export const loadPast = async (pool: Pool, shop: Shop, names: readonly string[]): Promise<void> => {
  const plan = await loadPlan(pool)
  const eventsOf = shop.byUser(pastDays)
  const at = shop.instant(pastDays)
  for (let first = 1; first <= shop.users; first += usersAtOnce) {
    const count = Math.min(usersAtOnce, shop.users - first + 1)
    const users = Array.from({ length: count }, (_, index) => {
      const user = userOf(first + index, shop.instant(0))
      const { feeds, audiences } = plan.workspaces.get(user.workspaceId) as Own
      for (const event of eventsOf(user.key)) fold(user, event, feeds.get(names[event.name] ?? ''))
      assess(user, { audiences, at, whole: true })
      return user
    })
    await pool.transaction(async (tx) => {
      await prepareSession(tx)
      await saveUsers(tx, users, plan)
      await saveIdentities(tx, first, count)
      await saveMembers(tx, users)
    })
  }
  // Handed out by the thousand.
  await pool.query(`select setval('user_key', $1)`, [Math.ceil(shop.users / 1_000) + 1])
}

type Own = NonNullable<ReturnType<Plan['workspaces']['get']>>

const userOf = (key: number, start: number): UserState => {
  const user = newUser(key, 1)
  user.userId = `user-${key}`
  user.identities = 1
  const stamp = { te: start - 1, r: start - 1, id: 'b-000000000000' }
  const traits = Object.entries(traitsOf(key))
  setTraits(user, new Map(traits.map(([name, value]) => [name, { value, stamp }])))
  seeSource(user, 1)
  return user
}

const fold = (user: UserState, event: Event, feeds: ReturnType<Own['feeds']['get']> = []): void => {
  const properties = propertiesOf(event)
  const id = `b-${String(event.number).padStart(12, '0')}`
  const seen = { te: event.te, r: event.te, id, properties }
  for (const { leaf, step, where } of feeds)
    if (where === null || admits(where, properties)) observe(user, { leaf, step }, seen)
}

const saveIdentities = async (tx: Sql, first: number, count: number): Promise<void> => {
  await tx.query(
    `insert into identity (workspace_id, kind, value, user_key)
     select 1, 0, 'user-' || k, k from generate_series($1::bigint, $2) k`,
    [first, first + count - 1],
  )
}

const saveMembers = async (tx: Sql, users: readonly UserState[]): Promise<void> => {
  const rows = users.flatMap(({ key, members, computed }) => [
    ...members.map((audienceId) => ({ key, audienceId, value: null })),
    ...[...computed].map(([audienceId, value]) => ({ key, audienceId, value })),
  ])
  await tx.query(
    `insert into membership
       (audience_id, shard, user_key, user_id, cur, synced, value, synced_value)
     select m.audience_id, m.user_key % 64, m.user_key, 'user-' || m.user_key, true, true, m.value, m.value
       from unnest($1::int[], $2::bigint[], $3::text[]) as m(audience_id, user_key, value)
      order by m.audience_id, m.user_key`,
    [
      numberList(rows.map(({ audienceId }) => audienceId)),
      numberList(rows.map(({ key }) => key)),
      textList(rows.map(({ value }) => value)),
    ],
  )
}
