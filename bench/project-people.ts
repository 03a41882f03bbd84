// Users of the project benches, loaded in bulk: each is a copy of one of a few whose past was folded.
import { assess } from '../src/audience/assess.ts'
import { repack } from '../src/audience/pack.ts'
import { knownTo, type Plan } from '../src/audience/plan.ts'
import { newUser, setTraits, type UserState } from '../src/audience/state.ts'
import { prepareSession, saveUsers } from '../src/audience/store.ts'
import { admits } from '../src/domain/condition/evaluate.ts'
import type { Pool } from '../src/postgres/sql.ts'
import { observe } from '../src/project/fold.ts'
import { propertiesOf } from './project-scene.ts'

const usersAtOnce = 10_000
const templates = 1_000
const dayMs = 86_400_000
const pastDays = 95

type People = {
  readonly users: number
  readonly now: number
  readonly names: readonly string[]
}

export const loadUsers = async (pool: Pool, plan: Plan, people: People): Promise<void> => {
  const { users } = people
  await pool.query('truncate ustate, identity, membership')
  const originals = Array.from({ length: templates }, (_, at) => templateOf(at, plan, people))
  await saveMemberships(pool, originals)
  for (let first = 1; first <= users; first += usersAtOnce) {
    const count = Math.min(usersAtOnce, users - first + 1)
    const states = Array.from({ length: count }, (_, at): UserState => {
      const key = first + at
      return { ...(originals[key % templates] as UserState), key, userId: `user-${key}` }
    })
    const range = [first, first + count - 1]
    await pool.transaction(async (tx) => {
      await prepareSession(tx)
      await saveUsers(tx, states, plan)
      await tx.query(
        `insert into identity (workspace_id, kind, value, user_key)
         select 1, 0, 'user-' || k, k from generate_series($1::bigint, $2) k`,
        range,
      )
      await tx.query(
        `insert into membership (audience_id, shard, user_key, user_id, value, cur, synced)
         select m.audience_id, k % 64, k, 'user-' || k, m.value, true, true
           from generate_series($1::bigint, $2) k
           join bench_member m on m.template = k % ${templates}`,
        range,
      )
    })
  }
  await pool.query(`select setval('user_key', $1)`, [Math.ceil(users / 1_000) + 1])
  await pool.query('vacuum analyze ustate, identity, membership')
}

const saveMemberships = async (pool: Pool, originals: readonly UserState[]): Promise<void> => {
  const rows = originals.flatMap(({ members, computed }, template) => [
    ...members.map((audienceId) => ({ template, audienceId, value: null })),
    ...[...computed].map(([audienceId, value]) => ({ template, audienceId, value })),
  ])
  await pool.query('drop table if exists bench_member')
  await pool.query('create table bench_member (template int, audience_id int, value text)')
  await pool.query(
    'insert into bench_member select * from unnest($1::int[], $2::int[], $3::text[])',
    [
      rows.map(({ template }) => template),
      rows.map(({ audienceId }) => audienceId),
      rows.map(({ value }) => value),
    ],
  )
  await pool.query('create index on bench_member (template) include (audience_id, value)')
  await pool.query('vacuum analyze bench_member')
}

/** From 4 to 24 events over three months, folded by the engine itself. */
const templateOf = (number: number, plan: Plan, { now, names }: People): UserState => {
  const user = newUser(0, 1)
  user.userId = 'user'
  user.identities = 1
  const random = randomOf(number + 1)
  const own = plan.workspaces.get(1)
  for (let left = 4 + (number % 21); left > 0; left -= 1) {
    const name = names[Math.floor(random() * names.length)] as string
    const te = now - Math.floor(random() * pastDays * dayMs) - 1
    const properties = propertiesOf(Math.floor(random() * 1_000))
    const seen = { te, r: te, id: `past-${left}`, properties }
    for (const { leaf, step, where } of own?.feeds.get(name) ?? [])
      if (where === null || admits(where, properties)) observe(user, { leaf, step }, seen)
  }
  const stamp = {
    te: now,
    r: now,
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
  }
  setTraits(
    user,
    new Map([
      ['email', { value: `user-${number}@shop.example`, stamp }],
      ['plan', { value: number % 3 === 0 ? 'free' : 'gold', stamp }],
    ]),
  )
  // Memberships and timer as the engine itself would have left them.
  assess(user, { audiences: own?.audiences ?? [], at: now, whole: true })
  repack(user, knownTo(plan))
  return user
}

/** The same numbers for the same seed. */
export const randomOf = (seed: number): (() => number) => {
  let state = (seed * 2_654_435_761) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
