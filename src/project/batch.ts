// The transaction of a batch: what it rests on, and what it writes.
import { usersAsPacked } from '../audience/packed-users.ts'
import { loadPlan, type Plan, planVersion } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { prepareSession, replaceUsers, saveFirstFlips, saveFlips } from '../audience/store.ts'
import { saveVerdicts } from '../duplicate/duplicates.ts'
import { Fault } from '../fault.ts'
import { movePositions } from '../postgres/position.ts'
import { type Connection, holdsPositions } from '../postgres/sql.ts'
import { saveTies } from './accounts.ts'
import { type Decided, decide, isOutdated } from './decide.ts'
import { saveDeletions } from './deletion-store.ts'
import type { Desk } from './desk.ts'
import { eraseUsers, type PlacedOrder } from './erase.ts'
import type { Folded } from './fold.ts'
import { type Held, holdUsers, knownNow, lockHeld, locksItself } from './held.ts'
import type { Verdicts } from './judge.ts'
import type { Lane } from './lanes.ts'
import type { Metered } from './meter.ts'
import type { Moves } from './moves.ts'
import type { Prepared } from './prepare.ts'
import { addIdentities, foldedState, lockPositions, recordDecisions, saveMerges } from './store.ts'
import { saveMetered } from './usage-store.ts'

/** Why a batch was rolled back: each is expected, and its answer is to go on differently. */
export type Unwound =
  /** Somebody else has these partitions. */
  | { readonly type: 'lost'; readonly lanes: readonly Lane[] }
  /** An earlier try was committed although its answer never came. */
  | { readonly type: 'committed' }
  /** Who is to be forgotten changed after the batch was decided. */
  | { readonly type: 'outdated' }
  /** The plan or an identity changed after the batch was prepared. */
  | { readonly type: 'stale'; readonly plan: Plan | null }

export const unwind = (why: Unwound) => Object.assign(new Error(why.type), { code: 'unwound', why })

export const unwoundBy = (error: unknown): Unwound | null =>
  (error as { code?: unknown } | null)?.code === 'unwound' ? (error as { why: Unwound }).why : null

export type Written = Folded & {
  /** Those of before that it was folded into, or might have been. */
  readonly held: ReadonlyMap<number, UserState>
  /** Users that an order erased after all else. */
  readonly erased: readonly number[]
  readonly metered: Metered
}

type Batch = {
  readonly prepared: Prepared
  readonly verdicts: Verdicts
  readonly moves: Moves
  /** `null` where it is to be decided here, upon users that are locked. */
  readonly decided: Decided | null
}

/** One transaction: positions, users, memberships, usage and duplicates, or none of it. */
export const writeBatch = (desk: Desk, batch: Batch): Promise<Written> =>
  desk.pool.transaction(async (tx) => {
    const { prepared, verdicts, moves } = batch
    await openWriting(tx, { moves, plan: prepared.plan })
    const decided = batch.decided ?? (await decideLocked(tx, desk, batch))
    if (isOutdated(decided, desk.suppressions)) throw unwind({ type: 'outdated' })
    const { calls, orders, known, held, folded, metered } = decided
    await lockDecided(tx, { folded, held, orders })
    await saveVerdicts(tx, [...verdicts.values()])
    await saveFolded(tx, { ...decided, plan: prepared.plan })
    await saveDeletions(tx, calls)
    await saveMetered(tx, metered, writerOf(moves))
    const { users } = held
    const erased = await eraseUsers(tx, {
      ...{ orders, known, folded },
      locked: users,
      plan: prepared.plan,
    })
    return { ...folded, held: users, erased, metered }
  }, holdsPositions)

const decideLocked = async (
  tx: Connection,
  desk: Desk,
  { prepared, verdicts }: Batch,
): Promise<Decided> => {
  const known = knownNow(desk, prepared)
  const held = await holdUsers(tx, desk, known)
  if (held === null) throw unwind({ type: 'stale', plan: null })
  const { yieldMs } = desk
  return decide(desk, { prepared, verdicts, known, held, notBefore: 0, yieldMs })
}

/** First in a transaction that folds: the positions are ours, and the plan is the one prepared with. */
export const openWriting = async (
  tx: Connection,
  { moves, plan }: { readonly moves: Moves; readonly plan: Plan },
): Promise<void> => {
  await prepareSession(tx)
  await takePositions(tx, moves)
  if ((await planVersion(tx)) !== plan.version)
    throw unwind({ type: 'stale', plan: await loadPlan(tx) })
}

type Rested = {
  readonly folded: Folded
  readonly held: Held
  readonly orders: readonly PlacedOrder[]
}

/** What the fold rested on is as it was, and stays so until the commit. */
export const lockDecided = async (tx: Connection, { folded, held, orders }: Rested) => {
  if (held.locked || (orders.length === 0 && locksItself(folded))) return
  if (!(await lockHeld(tx, held.users))) throw unwind({ type: 'stale', plan: null })
}

type Saving = Pick<Decided, 'folded' | 'at' | 'made' | 'packed'> & { readonly plan: Plan }

/** Users, who is who, and memberships. */
export const saveFolded = async (
  tx: Connection,
  { folded, at, made, packed, plan }: Saving,
): Promise<void> => {
  // First, because a tie that is new comes with a new `ver` of its user.
  const tied = await saveTies(tx, folded, plan)
  if (!(await replaceUsers(tx, packed ?? usersAsPacked(tied, plan))))
    throw unwind({ type: 'stale', plan: null })
  if (!(await addIdentities(tx, folded.identities))) throw unwind({ type: 'stale', plan: null })
  await saveMerges(tx, folded)
  await recordDecisions(tx, folded)
  const memberships = folded.flips.filter(({ mark }) => !mark)
  const of = (isFirst: boolean) => ({
    flips: memberships.filter(({ userKey }) => made.has(userKey) === isFirst),
    at: new Date(at),
  })
  await saveFirstFlips(tx, of(true))
  await saveFlips(tx, of(false))
}

/** The first partition locked: whoever else meters has locked others, and so writes other rows. */
const writerOf = (moves: Moves): string =>
  [...moves.keys()].map(({ lease }) => `${lease.topic}/${lease.partition}`).sort()[0] as string

const takePositions = async (tx: Connection, moves: Moves): Promise<void> => {
  const lanes = [...moves.keys()]
  const rows = await lockPositions(
    tx,
    lanes.map(({ lease }) => lease),
  )
  const rowOf = (lane: Lane) =>
    rows.find((row) => row.topic === lane.lease.topic && row.partition === lane.lease.partition)
  const lost = lanes.filter((lane) => rowOf(lane)?.epoch !== lane.epoch)
  if (lost.length > 0) throw unwind({ type: 'lost', lanes: lost })
  const moved = lanes.filter((lane) => rowOf(lane)?.next !== lane.next)
  if (moved.length > 0) {
    // With the epoch still ours only our own earlier try can have moved them, all together.
    if (lanes.every((lane) => rowOf(lane)?.next === moves.get(lane)?.next))
      throw unwind({ type: 'committed' })
    throw new Fault('position_lost', 'a position moved under the epoch of its owner')
  }
  await movePositions(
    tx,
    [...moves].map(([{ lease, epoch }, { next, folded }]) => ({
      reader: 'project',
      topic: lease.topic,
      partition: lease.partition,
      epoch,
      next,
      state: foldedState(folded),
    })),
  )
}
