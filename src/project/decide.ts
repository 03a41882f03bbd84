// What a batch comes to: its calls folded into users, packed as they will be stored. Nothing is written.
import { type PackedUsers, packUsers } from '../audience/packed-users.ts'
import type { UserState } from '../audience/state.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Desk } from './desk.ts'
import { ordersIn, type PlacedOrder } from './erase.ts'
import { type Folded, openFolding, type Placed } from './fold.ts'
import { type Held, knownNow, locksItself, takeCached } from './held.ts'
import type { Verdicts } from './judge.ts'
import { type Metered, meterBatch } from './meter.ts'
import { highestOf, movesOf } from './moves.ts'
import { pauser } from './pauser.ts'
import { placed } from './placed.ts'
import type { Prepared } from './prepare.ts'

export type Decided = {
  readonly calls: readonly Placed[]
  readonly orders: readonly PlacedOrder[]
  readonly known: ReadonlyMap<string, number>
  /** Those of before that it was folded into, or might have been. */
  readonly held: Held
  readonly folded: Folded
  /** The instant that it was evaluated at. */
  readonly at: number
  /** Keys of users who are new. */
  readonly made: ReadonlySet<number>
  /** `null` where it is only known in the transaction who is to be written. */
  readonly packed: PackedUsers | null
  readonly metered: Metered
  /** By which suppressions calls were left out. */
  readonly suppressions: bigint
}

/** A batch decided but not written yet, as far as the one after it asks. */
export type Ahead = {
  readonly at: number
  /** Everybody it holds or makes, by key, as it leaves them. */
  readonly users: ReadonlyMap<number, UserState>
  /** Identities it makes, by their text. */
  readonly identities: ReadonlyMap<string, number>
}

export const nothingAhead: Ahead = { at: 0, users: new Map(), identities: new Map() }

/**
 * What the one after it may be decided upon; `null` where that has to wait until this is written: who is who
 * may come out otherwise.
 */
export const aheadOf = ({ folded, held, packed, at }: Decided): Ahead | null => {
  if (packed === null) return null
  const users = new Map(held.users)
  for (const user of folded.users) users.set(user.key, user)
  return { at, users, identities: new Map(folded.identities.map(({ text, key }) => [text, key])) }
}

type Deciding = {
  readonly prepared: Prepared
  readonly verdicts: Verdicts
  /** Folding gives way after so many milliseconds. */
  readonly yieldMs: number
}

/**
 * From memory alone; `null` where it has to be decided in its transaction: a user is not in memory, or is to be
 * locked first. Whether users are as they were shows when they are written.
 */
export const decideAhead = async (
  desk: Desk,
  deciding: Deciding,
  before: Ahead,
): Promise<Decided | null> => {
  if (desk.lockFirst > 0) return null
  const known = knownNow(desk, deciding.prepared, before.identities)
  const users = takeCached(desk, known, before.users)
  if (users === null) return null
  desk.inHand = [before.users, users]
  return decide(desk, { ...deciding, known, held: { users, locked: false }, notBefore: before.at })
}

type Upon = Deciding & {
  readonly known: ReadonlyMap<string, number>
  readonly held: Held
  readonly notBefore: number
}

export const decide = async (desk: Desk, upon: Upon): Promise<Decided> => {
  const { prepared, verdicts, known, held, notBefore, yieldMs } = upon
  const { plan, pieces } = prepared
  const at = Math.max(notBefore, highestOf(desk, movesOf(pieces)))
  const suppressions = versionOf(desk.suppressions)
  const calls = placed({ ...prepared, verdicts }, desk.suppressions)
  const keys = await desk.keys.reserve(prepared.asked.size)
  try {
    const folding = openFolding({ plan, known, users: held.users, newKey: keys.next, yieldMs })
    await folding.add(calls)
    const folded = await folding.finish(at)
    const orders = ordersIn(calls)
    const made = madeBy(folded)
    const isPlain = orders.length === 0 && locksItself(folded)
    const pause = pauser(yieldMs, 1)
    const packed = isPlain ? await packUsers(folded.users, { plan, pause }) : null
    const metered = meterBatch(calls, { key: desk.usageKey })
    const of = { calls, orders, known, held, folded }
    return { ...of, at, made, packed, metered, suppressions }
  } finally {
    keys.release()
  }
}

/** Before they are packed, which gives them their first `ver`. */
export const madeBy = ({ users }: Folded): ReadonlySet<number> =>
  new Set(users.flatMap(({ key, ver }) => (ver === 0 ? [key] : [])))

const versionOf = (suppressions: Suppressions): bigint => suppressions.version?.() ?? 0n

/** Whether calls would be left out now that were not when it was decided. */
export const isOutdated = ({ suppressions }: Decided, now: Suppressions): boolean =>
  suppressions !== versionOf(now)
