// Comparing the rebuilt state with the live one, user by user, at one position of each partition.
import type { Plan } from '../audience/plan.ts'
import type { Connection } from '../postgres/sql.ts'
import { type Canonical, canonicalOf, differingParts, type Part } from './canonical.ts'
import {
  beforeAll,
  type Identified,
  type IdentityRow,
  type Person,
  readIdentities,
  readPeople,
} from './people-store.ts'

export type Difference = {
  readonly workspaceId: number
  /** "kind:value": kind 0 is a user id, 1 an anonymous id. */
  readonly identity: string
  /** `missing`: rebuilding does not find this user. `unknown`: the live state does not have them. */
  readonly parts: readonly (Part | 'missing' | 'unknown')[]
  readonly live: Canonical | null
  readonly rebuilt: Canonical | null
}

type Sides = {
  /** A snapshot in which the projector stands where the rebuilt state does. */
  readonly live: Connection
  readonly rebuilt: Connection
  readonly plan: Plan
  readonly at: number
  readonly pageMax: number
  readonly differencesMax: number
  readonly signal: AbortSignal
}

type Found = {
  readonly users: number
  readonly differing: number
  readonly differences: readonly Difference[]
}

/** Walks both by their identities; a user is looked at where the first of theirs stands. */
export const compareStates = async (sides: Sides): Promise<Found> => {
  const found = { users: 0, differing: 0, differences: [] as Difference[] }
  for (let after: Identified | null = beforeAll; after !== null; ) {
    sides.signal.throwIfAborted()
    const [live, rebuilt] = await Promise.all([
      readIdentities(sides.live, { after, limit: sides.pageMax }),
      readIdentities(sides.rebuilt, { after, limit: sides.pageMax }),
    ])
    after = lastOfBoth(live, rebuilt, sides.pageMax)
    const upTo = (rows: readonly IdentityRow[]) =>
      after === null ? rows : rows.filter((row) => !isAfter(row, after as Identified))
    const here = await canonicals(sides.live, upTo(live), sides)
    const there = await canonicals(sides.rebuilt, upTo(rebuilt), sides)
    for (const name of new Set([...here.keys(), ...there.keys()])) {
      found.users += 1
      const difference = differenceOf(name, here.get(name) ?? null, there.get(name) ?? null)
      if (difference === null) continue
      found.differing += 1
      if (found.differences.length < sides.differencesMax) found.differences.push(difference)
    }
  }
  return found
}

/** Up to where both pages say all; `null`: to the end. */
const lastOfBoth = (
  live: readonly IdentityRow[],
  rebuilt: readonly IdentityRow[],
  pageMax: number,
): Identified | null => {
  const ends = [live, rebuilt].flatMap((rows) => (rows.length < pageMax ? [] : (rows.at(-1) ?? [])))
  return ends.reduce<Identified | null>(
    (least, end) => (least === null || isAfter(least, end) ? end : least),
    null,
  )
}

/** As Postgres orders them: texts by their bytes. */
const isAfter = (left: Identified, right: Identified): boolean => {
  if (left.workspaceId !== right.workspaceId) return left.workspaceId > right.workspaceId
  if (left.kind !== right.kind) return left.kind > right.kind
  return Buffer.compare(Buffer.from(left.value), Buffer.from(right.value)) > 0
}

/** Of the users whose first identity is among the rows, by "workspace:kind:value" of it. */
const canonicals = async (
  sql: Connection,
  rows: readonly IdentityRow[],
  { plan, at }: Sides,
): Promise<ReadonlyMap<string, Canonical>> => {
  const people = await readPeople(sql, [...new Set(rows.map(({ userKey }) => userKey))])
  return new Map(
    rows.flatMap((row): readonly [string, Canonical][] => {
      const person = people.get(row.userKey)
      const identity = `${row.kind}:${row.value}`
      if (person === undefined || person.identities[0] !== identity) return []
      return [[`${row.workspaceId}:${identity}`, sayingOf(person, { plan, at })]]
    }),
  )
}

const sayingOf = (
  { state, identities, accounts }: Person,
  { plan, at }: Pick<Sides, 'plan' | 'at'>,
): Canonical => canonicalOf(state, { plan, at, identities, accounts })

const differenceOf = (
  name: string,
  live: Canonical | null,
  rebuilt: Canonical | null,
): Difference | null => {
  const [workspaceId = '', ...identity] = name.split(':')
  const of = { workspaceId: Number(workspaceId), identity: identity.join(':'), live, rebuilt }
  if (live === null) return { ...of, parts: ['unknown'] }
  if (rebuilt === null) return { ...of, parts: ['missing'] }
  const parts = differingParts(live, rebuilt)
  return parts.length === 0 ? null : { ...of, parts }
}
