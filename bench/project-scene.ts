// What the project bench works on: 20 audiences, users loaded in bulk, and calls of distinct users.
import { assess } from '../src/audience/assess.ts'
import type { Plan } from '../src/audience/plan.ts'
import { newUser, setSummary, setTraits, type UserState } from '../src/audience/state.ts'
import { prepareSession, saveUsers } from '../src/audience/store.ts'
import type { Audience, Configuration, Live } from '../src/domain/configuration.ts'
import { digestOf, type JsonObject, logKey, type Message } from '../src/domain/message.ts'
import type { Codec, Entry } from '../src/log/log.ts'
import type { Pool } from '../src/postgres/sql.ts'

export const partitions = { calls: 12, 'calls.import': 12, outbound: 12 }

const events = ['Order Completed', 'Product Viewed', 'Product Added', 'Signed In', 'Plan Changed']

/** Each event feeds two leaves, read by four audiences: 20 audiences, 10 leaves. */
export const audiences: readonly Audience[] = events.flatMap((name, at) => {
  const lately = { event: { name, window: { last: '90d' } } }
  const costly = {
    event: { name, where: { prop: 'price', op: 'gte', value: 50 }, window: { last: '30d' } },
  }
  const count = (op: string, value: number) => ({ count: { op, value } })
  const conditions: readonly JsonObject[] = [
    { ...lately, ...count('gte', 2) },
    { ...costly, ...count('gte', 2) },
    { not: { ...lately, ...count('gte', 1) } },
    {
      all: [
        { ...lately, ...count('gte', 4) },
        { ...costly, ...count('gte', 1) },
      ],
    },
  ]
  return conditions.map((condition, index) => ({
    id: at * conditions.length + index + 1,
    kind: 'audience',
    timezone: 'UTC',
    includeAnonymous: true,
    retractOnDelete: false,
    entryEvents: false,
    workspaceId: 1,
    name: `audience ${at} ${index}`,
    key: `audience_${at}_${index}`,
    condition,
    destinationIds: [1],
    syncEveryMs: 9_000_000,
  }))
})

export const liveOf = (all: readonly Audience[]): Live => {
  const configuration: Configuration = {
    version: 1n,
    workspaces: new Map(),
    sources: new Map(),
    sourceByWriteKey: new Map(),
    sourceBySecretKeyHash: new Map(),
    destinations: new Map(),
    destinationsBySource: new Map(),
    audiences: new Map(all.map((audience) => [audience.id, audience])),
  }
  return { now: () => configuration, onChange: () => () => undefined }
}

const usersAtOnce = 10_000
const hourMs = 3_600_000

/** Users with a past: each leaf holds two events, each user is in some audiences. */
export const loadUsers = async (
  pool: Pool,
  plan: Plan,
  { users, now }: { readonly users: number; readonly now: number },
): Promise<void> => {
  for (let first = 1; first <= users; first += usersAtOnce) {
    const count = Math.min(usersAtOnce, users - first + 1)
    const states = Array.from({ length: count }, (_, at) => userAt(first + at, { plan, now }))
    await pool.transaction(async (tx) => {
      await prepareSession(tx)
      await saveUsers(tx, states, plan)
      await tx.query(
        `insert into identity (workspace_id, kind, value, user_key)
         select 1, 0, 'user-' || k, k from generate_series($1::bigint, $2) k`,
        [first, first + count - 1],
      )
      await tx.query(
        `insert into membership (audience_id, shard, user_key, user_id, cur, synced)
         select a, k % 64, k, 'user-' || k, true, true
           from generate_series($1::bigint, $2) k, generate_series(1, 18) a where a % 4 in (1, 2)`,
        [first, first + count - 1],
      )
    })
  }
  await pool.query(`select setval('user_key', $1)`, [Math.ceil(users / 1_000) + 1])
  await pool.query('vacuum analyze ustate, identity, membership')
}

const userAt = (key: number, { plan, now }: { plan: Plan; now: number }): UserState => {
  const user = newUser(key, 1)
  user.userId = `user-${key}`
  user.identities = 1
  const bucket = Math.floor(now / hourMs) - (key % 500)
  for (const leaf of plan.leaves.values())
    setSummary(user, leaf, { buckets: [bucket, bucket - 7], counts: [1, 1] })
  // Memberships and timer as the engine itself would have left them.
  assess(user, { audiences: plan.workspaces.get(1)?.audiences ?? [], at: now, whole: true })
  const stamp = { te: now, r: now, id: `00000000-0000-4000-8000-${String(key).padStart(12, '0')}` }
  setTraits(
    user,
    new Map([
      ['email', { value: `user-${key}@shop.example`, stamp }],
      ['plan', { value: 'gold', stamp }],
    ]),
  )
  return user
}

/** Steps through all users without repeating one before every other has had a call. */
export const stride = 7_919

export const callOf = (
  number: number,
  {
    users,
    now,
    codec,
  }: { readonly users: number; readonly now: number; readonly codec: Codec<Message> },
): Entry => {
  const userId = `user-${((number * stride) % users) + 1}`
  const messageId = `b-${number}`
  const event = events[number % events.length] as string
  const who = { workspaceId: 1, sourceId: 1, messageId, userId, anonymousId: null }
  const timestamp = new Date(now).toISOString()
  const body = {
    type: 'track',
    messageId,
    userId,
    event,
    properties: {
      price: 50 + (number % 100),
      currency: 'EUR',
      quantity: 1,
      sku: `sku-${number % 977}`,
    },
    context: {
      library: { name: 'bench', version: '1.0.0' },
      locale: 'en-IE',
      page: { path: '/shop' },
    },
    integrations: {},
    timestamp,
    receivedAt: timestamp,
  }
  const message: Message = {
    ...who,
    digest: digestOf(who),
    type: 'track',
    previousId: null,
    groupId: null,
    event,
    timestamp: now,
    originalTimestamp: now,
    sentAt: now,
    receivedAt: now,
    body: Buffer.from(JSON.stringify(body)),
    filtered: null,
  }
  return { key: logKey(message), value: codec.encode(message) }
}
