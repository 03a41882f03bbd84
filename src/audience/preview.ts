// Trying a condition on the stored users before it is saved, and what an edit would change.

import type { Condition } from '../domain/condition/condition.ts'
import { type BoundCondition, bind, holds, type LeafFinder } from '../domain/condition/evaluate.ts'
import { feedsOf, kindOf, type LeafNeed, leavesOf } from '../domain/condition/leaf.ts'
import type { Message } from '../domain/message.ts'
import type { Codec, Source } from '../log/log.ts'
import type { Sql } from '../postgres/sql.ts'
import { findLeaves } from './look.ts'
import { foldSample, type Sampled, type SampledLeaf } from './sample-history.ts'
import { factsOf, type UserState } from './state.ts'
import { openCounter, type Part, scanUsers, type Tally } from './survey.ts'

export const previewLimits = {
  /** Users read where everything the condition asks for is kept already. */
  usersMax: 102_400,
  /** Users held in memory where the log has to be read. */
  logUsersMax: 10_240,
  /** Entries of the log that are read for them, the newest. */
  callsMax: 200_000,
  /** Then it ends with what was seen so far. */
  durationMsMax: 20_000,
}

export type Asking<C = Condition> = {
  readonly sql: Sql
  readonly workspaceId: number
  readonly condition: C
  /** The audience to compare with: as it is worked out, `null` while it is not; `null` for none. */
  readonly current: { readonly id: number; readonly condition: C | null } | null
  /** `null` where this process reads no log. */
  readonly log: { readonly source: Source; readonly codec: Codec<Message> } | null
  readonly at: number
  readonly sampleMax: number
  readonly signal: AbortSignal
  readonly limits: typeof previewLimits
}

export type Preview = {
  /** All users, members or not. */
  readonly users: number
  readonly usersRead: number
  /** Whether each user was evaluated, and by all that is known. */
  readonly isExact: boolean
  /** `null` where the stored users say everything. */
  readonly log: Sampled | null
  readonly members: Tally
  readonly entering: Tally
  readonly leaving: Tally
}

/** `null` when the log would have to be read and cannot be. Inside one REPEATABLE READ transaction. */
export const preview = async (asking: Asking): Promise<Preview | null> => {
  const { sql, workspaceId, condition, log } = asking
  const find = await findLeaves(sql, workspaceId)
  const missing = missingLeaves(leavesOf(condition), find)
  const isOver = overAfter(asking)
  if (missing.size === 0) {
    const parts = scanUsers(sql, { workspaceId, usersMax: asking.limits.usersMax })
    return count(asking, { find, isOver, parts, log: null })
  }
  if (log === null) return null
  const parts: Part[] = []
  for await (const part of scanUsers(sql, { workspaceId, usersMax: asking.limits.logUsersMax }))
    parts.push(part)
  const sampled = await foldSample({
    ...{ sql, workspaceId, isOver, ...log },
    users: new Map(parts.flatMap(({ users }) => users.map((user) => [user.key, user]))),
    leaves: [...missing.values()],
    callsMax: asking.limits.callsMax,
  })
  const findAny: LeafFinder = (need) => find(need) ?? missing.get(need.hash) ?? null
  return count(asking, { find: findAny, isOver: () => false, parts, log: sampled })
}

export const overAfter = ({
  limits,
  signal,
}: Pick<Asking, 'limits' | 'signal'>): (() => boolean) => {
  const endsAt = performance.now() + limits.durationMsMax
  return () => signal.aborted || performance.now() >= endsAt
}

/** By hash, under ids below those of stored leaves. */
export const missingLeaves = (
  needs: readonly LeafNeed[],
  find: LeafFinder,
): ReadonlyMap<string, SampledLeaf> => {
  const missing = new Map<string, LeafNeed>()
  for (const need of needs)
    if (find(need) === null && need.keep > (missing.get(need.hash)?.keep ?? 0))
      missing.set(need.hash, need)
  return new Map(
    [...missing].map(([hash, { spec, keep }], at) => [
      hash,
      { id: -1 - at, kind: kindOf(spec, keep), feeds: feedsOf(spec) },
    ]),
  )
}

type Counting = {
  readonly find: LeafFinder
  readonly isOver: () => boolean
  readonly parts: AsyncIterable<Part> | Iterable<Part>
  readonly log: Sampled | null
}

const count = async (asking: Asking, { find, isOver, parts, log }: Counting): Promise<Preview> => {
  const { condition, at, sampleMax } = asking
  const bound = bind(condition, find) as BoundCondition
  const wasIn = formerly(asking, find)
  const [members, entering, leaving] = [
    openCounter(sampleMax),
    openCounter(sampleMax),
    openCounter(sampleMax),
  ]
  let [users, usersRead, isExact, done] = [0, 0, log?.isWhole ?? true, 1]
  for await (const part of parts) {
    done = part.done
    users += part.users.length * part.weight
    usersRead += part.users.length
    if (part.weight > 1) isExact = false
    for (const user of part.users) {
      const [was, is] = [wasIn(user), holds(bound, factsOf(user), at)]
      if (is) members.add(user, part.weight)
      if (is && !was) entering.add(user, part.weight)
      if (was && !is) leaving.add(user, part.weight)
    }
    if (isOver()) break
  }
  return {
    ...{ users: Math.round(users / done), usersRead, log },
    isExact: isExact && done === 1,
    members: members.tally(1 / done),
    entering: entering.tally(1 / done),
    leaving: leaving.tally(1 / done),
  }
}

/** Whether a user is in the audience that is compared with. */
const formerly = ({ current, at }: Asking, find: LeafFinder): ((user: UserState) => boolean) => {
  if (current === null) return () => false
  const before = current.condition ? bind(current.condition, find) : null
  return before === null
    ? ({ members }) => members.includes(current.id)
    : (user) => holds(before, factsOf(user), at)
}
