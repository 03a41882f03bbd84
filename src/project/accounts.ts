// What a batch changes of accounts: who is tied to them, and what their users count for.
import { accountIdsOf, type Plan } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { appendMarks, marksOf, tieUsers, untieUsers, visitUsers } from '../audience/ties.ts'
import { accountMarks } from '../domain/account.ts'
import type { Sql } from '../postgres/sql.ts'
import type { Folded } from './fold.ts'

/** Returns the users to be written: those of the batch, and those who are tied anew. */
export const saveTies = async (
  tx: Sql,
  folded: Folded,
  plan: Plan,
): Promise<readonly UserState[]> => {
  const { users, vanished, flips, named, lostMarks } = folded
  const into = new Map(vanished.map(({ user, into }) => [user.key, into]))
  const moved = await untieUsers(tx, { keys: [...into.keys()], marks: lostMarks })
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
  const marks = [...new Set(ties.map(({ userKey }) => userKey))].flatMap((key) => {
    const user = folded.user(key)
    return marksOf(user, accountIdsOf(plan, user.workspaceId))
  })
  const tied = await tieUsers(tx, { ties, marks })
  const written = new Set(users.map(({ key }) => key))
  return [...users, ...[...tied].filter((key) => !written.has(key)).map(folded.user)]
}
