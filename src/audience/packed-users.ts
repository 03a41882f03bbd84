// Users as COPY takes them, packed when they are sent or all at once.
import { copyRows, type UserRow } from './copy.ts'
import { repack } from './pack.ts'
import { knownTo, type Plan } from './plan.ts'
import { shards, type UserState } from './state.ts'

/** One by one as COPY takes them. */
export function* packedRows(users: readonly UserState[], plan: Plan): Generator<UserRow> {
  const known = knownTo(plan)
  for (const user of users) {
    repack(user, known)
    user.ver += 1
    yield {
      key: user.key,
      shard: user.key % shards,
      workspaceId: user.workspaceId,
      ver: user.ver,
      userId: user.userId,
      st: user.packed,
      due: user.due,
      mergedInto: null,
    }
  }
}

/** As COPY takes them, each with its next `ver`. */
export type PackedUsers = {
  /** In the order of keys. */
  readonly stored: Iterable<Buffer>
  readonly storedCount: number
  /** Of users who are new. */
  readonly made: Iterable<Buffer>
  readonly madeCount: number
}

/** Each is packed when its turn comes to be sent: a great many need no room. */
export const usersAsPacked = (users: readonly UserState[], plan: Plan): PackedUsers => {
  const made = users.filter(({ ver }) => ver === 0)
  const stored = made.length === 0 ? [...users] : users.filter(({ ver }) => ver > 0)
  stored.sort((left, right) => left.key - right.key)
  return {
    ...{ stored: copyRows(packedRows(stored, plan)), storedCount: stored.length },
    ...{ made: copyRows(packedRows(made, plan)), madeCount: made.length },
  }
}

type Packing = {
  readonly plan: Plan
  readonly pause: { due(): boolean; take(): Promise<void> }
}

/** All of them now, giving way now and then. */
export const packUsers = async (
  users: readonly UserState[],
  { plan, pause }: Packing,
): Promise<PackedUsers> => {
  const lazy = usersAsPacked(users, plan)
  const all = async (chunks: Iterable<Buffer>): Promise<readonly Buffer[]> => {
    const taken: Buffer[] = []
    for (const chunk of chunks) {
      taken.push(chunk)
      if (pause.due()) await pause.take()
    }
    return taken
  }
  return { ...lazy, stored: await all(lazy.stored), made: await all(lazy.made) }
}
