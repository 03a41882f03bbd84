// What the desk keeps of a batch after its commit.
import type { UserState } from '../audience/state.ts'
import type { Decided } from './decide.ts'
import type { Desk } from './desk.ts'
import type { Folded } from './fold.ts'
import type { Moves } from './moves.ts'

type Written = Pick<Folded, 'users' | 'vanished' | 'identities'> & {
  /** Those of before that it was folded into, or might have been. */
  readonly held: ReadonlyMap<number, UserState>
  readonly erased: readonly number[]
}

/** `written`: `null` when it is not known any more what was. */
export const remember = (desk: Desk, moves: Moves, written: Written | null): void => {
  for (const [lane, { next, folded }] of moves) {
    lane.next = next
    lane.folded = folded
    desk.folded = Math.max(desk.folded, folded)
    lane.commit()
  }
  if (written === null) return
  desk.lockFirst = Math.max(0, desk.lockFirst - 1)
  const done = new Set(written.vanished.map(({ user }) => user.key))
  for (const user of written.users) {
    desk.users.set(user)
    done.add(user.key)
  }
  for (const user of written.held.values()) if (!done.has(user.key)) desk.users.set(user)
  for (const { user, into } of written.vanished) {
    desk.users.delete(user.key)
    desk.merged.set(user.key, into)
  }
  for (const { text, key } of written.identities) desk.identities.set(text, key)
  // What still leads to them is found to be stale when their tombstone is met.
  for (const key of written.erased) desk.users.delete(key)
}

/** Nobody is as this batch has left them: those that the one before brought back, either. */
export const forget = (desk: Desk, { held, folded }: Decided): void => {
  for (const key of held.users.keys()) desk.users.delete(key)
  for (const { key } of folded.users) desk.users.delete(key)
}
