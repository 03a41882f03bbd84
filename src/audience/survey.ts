// How many users a condition would hold for, and some of them: read evenly over all there are, up to a limit.
import type { Sql } from '../postgres/sql.ts'
import { packedUser, readRows, usersInValue } from './rows.ts'
import type { UserState } from './state.ts'

/** Users of one range of keys. */
export type Part = {
  readonly users: readonly UserState[]
  /** How many of the range each one stands for. */
  readonly weight: number
  /** How much of all ranges was read with this one, up to 1. */
  readonly done: number
}

type Scan = {
  readonly workspaceId: number
  /** Rows read at most, other workspaces' too. */
  readonly usersMax: number
  /** Rows of one range: as many as come in one value. */
  readonly partUsers?: number
}

/**
 * Keys ascend with the age of users, so where not all can be read the keys are cut into equal ranges and the
 * first users of each stand for the rest of it. Ranges come scattered, so that those read until somebody stops
 * stand for all.
 */
export async function* scanUsers(sql: Sql, scan: Scan): AsyncGenerator<Part> {
  const { workspaceId, usersMax, partUsers = usersInValue } = scan
  const { rows } = await sql.query<{ first: number; last: number }>(
    'select min(user_key)::float8 as first, max(user_key)::float8 as last from ustate',
  )
  const [{ first, last }] = rows as [{ first: number | null; last: number }]
  if (first === null) return
  const parts = Math.max(1, Math.floor(usersMax / partUsers))
  const width = Math.max(partUsers, Math.ceil((last - first + 1) / parts))
  const count = Math.ceil((last - first + 1) / width)
  const stride = strideOf(count)
  for (let at = 0; at < count; at++) {
    const from = first + ((at * stride) % count) * width
    const range = { from, until: Math.min(from + width, last + 1), limit: partUsers }
    const { found, read, lastKey } = await readRange(sql, range)
    const seen = read < partUsers ? range.until : lastKey + 1
    const users = found.filter((user) => user.workspaceId === workspaceId)
    yield { users, weight: (range.until - from) / (seen - from), done: (at + 1) / count }
  }
}

/** Without a common divisor, so that every range comes once; by the golden ratio, so that they scatter. */
const strideOf = (count: number): number => {
  let stride = Math.max(1, Math.round(count * 0.618))
  while (divisorOf(stride, count) > 1) stride++
  return stride
}

const divisorOf = (a: number, b: number): number => (b === 0 ? a : divisorOf(b, a % b))

type Range = { readonly from: number; readonly until: number; readonly limit: number }

/** By ustate_pkey; tombstones are read, and left out. */
const readRange = async (sql: Sql, { from, until, limit }: Range) => {
  const { rows } = await sql.query<{ read: number; lastKey: number; users: Buffer | null }>(
    `select count(*)::int as read, coalesce(max(u.user_key), 0)::float8 as "lastKey",
            string_agg(${packedUser}, ''::bytea) as users
       from (select * from ustate where user_key >= $1 and user_key < $2
              order by user_key limit $3) u`,
    [from, until, limit],
  )
  const [{ read, lastKey, users }] = rows as [(typeof rows)[number]]
  const found = users === null ? [] : readRows(users).flatMap(({ user }) => user ?? [])
  return { found, read, lastKey }
}

/** Users counted, those with a user id apart, and the ids of some. */
export type Tally = {
  readonly users: number
  readonly identified: number
  readonly sample: readonly string[]
}

export type Counter = { add(user: UserState, weight: number): void; tally(scale: number): Tally }

/** The sample is the same for the same users, and takes old and new ones alike. */
export const openCounter = (sampleMax: number): Counter => {
  let [users, identified] = [0, 0]
  const sample: { readonly id: string; readonly rank: number }[] = []
  return {
    add: ({ key, userId }, weight) => {
      users += weight
      if (userId === null) return
      identified += weight
      const rank = rankOf(key)
      if (sample.length === sampleMax && rank >= (sample.at(-1)?.rank ?? 0)) return
      const at = sample.findIndex((other) => other.rank > rank)
      sample.splice(at < 0 ? sample.length : at, 0, { id: userId, rank })
      if (sample.length > sampleMax) sample.pop()
    },
    tally: (scale) => ({
      users: Math.round(users * scale),
      identified: Math.round(identified * scale),
      sample: sample.map(({ id }) => id),
    }),
  }
}

/** Scatters keys. */
const rankOf = (key: number): number => Math.imul(key | 0, 0x9e37_79b1) >>> 0
