// What a batch changes of accounts: who is tied to them, and what their users count for.
import { accountIdsOf, type Plan } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import {
  appendMarks,
  type Marked,
  marksOf,
  type Tie,
  tieUsers,
  untieUsers,
  visitUsers,
} from '../audience/ties.ts'
import { accountMarks } from '../domain/account.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Folded } from './fold.ts'

/** Of users in one statement: with the planner held to nested loops, it costs the square of them. */
const usersAtOnce = 1_000

function* inParts<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += usersAtOnce) yield all.slice(at, at + usersAtOnce)
}

const untieAll = async (
  tx: Sql,
  keys: readonly number[],
  marks: readonly Marked[],
): Promise<readonly Tie[]> => {
  const marksOfUser = Map.groupBy(marks, ({ userKey }) => userKey)
  const ties: Tie[] = []
  for (const some of inParts(keys)) {
    const own = some.flatMap((key) => marksOfUser.get(key) ?? [])
    ties.push(...(await untieUsers(tx, { keys: some, marks: own })))
  }
  return ties
}

/** Returns the users to be written: those of the batch, and those who are tied anew. */
export const saveTies = async (
  tx: Sql,
  folded: Folded,
  plan: Plan,
): Promise<readonly UserState[]> => {
  const { users, vanished, flips, named, lostMarks } = folded
  const into = new Map(vanished.map(({ user, into }) => [user.key, into]))
  const moved = await untieAll(tx, [...into.keys()], lostMarks)
  // What changed of users counts where they are tied already; a new tie brings all that they are.
  await appendMarks(tx, [
    ...flips.flatMap(({ mark, userKey, audienceId, member: has }) =>
      mark ? [{ userKey, mark: audienceId, has }] : [],
    ),
    ...named.map((userKey) => ({ userKey, mark: accountMarks.identified, has: true })),
  ])
  await visitUsers(tx, named)
  const ties = [
    ...folded.ties,
    ...moved.map((tie) => ({ ...tie, userKey: into.get(tie.userKey) as number })),
  ]
  const tied = new Set<number>()
  for (const some of inParts([...Map.groupBy(ties, ({ userKey }) => userKey)])) {
    const marks = some.flatMap(([key]) => {
      const user = folded.user(key)
      return marksOf(user, accountIdsOf(plan, user.workspaceId))
    })
    const fresh = await tieUsers(tx, { ties: some.flatMap(([, own]) => own), marks })
    for (const key of fresh) tied.add(key)
  }
  const written = new Set(users.map(({ key }) => key))
  return [...users, ...[...tied].filter((key) => !written.has(key)).map(folded.user)]
}
