// One gathered batch: what is decided before its transaction, and the transaction itself.
import { loadPlan, type Plan, planVersion } from '../audience/plan.ts'
import type { UserState } from '../audience/state.ts'
import { pinPlans, prepareSession, readUsers, replaceUsers, saveFlips } from '../audience/store.ts'
import { readOrder } from '../domain/erasure.ts'
import type { Identity } from '../domain/identity.ts'
import type { SipKey } from '../domain/siphash.ts'
import type { Suppressions } from '../domain/suppression.ts'
import { saveVerdicts } from '../duplicate/duplicates.ts'
import { Fault } from '../fault.ts'
import { movePositions } from '../postgres/position.ts'
import type { Connection, Pool, Sql } from '../postgres/sql.ts'
import { saveTies } from './accounts.ts'
import type { BoundedMap } from './bounded-map.ts'
import { type Call, identitiesOf, readCall } from './call.ts'
import { saveDeletions } from './deletion-store.ts'
import { eraseUsers, ordersIn, type PlacedOrder } from './erase.ts'
import { type Folded, openFolding } from './fold.ts'
import { type Held, holdUsers, knownNow, lockHeld, locksItself } from './held.ts'
import type { Verdicts } from './judge.ts'
import type { Lane, Piece } from './lanes.ts'
import { type Metered, meterBatch, type StoredSightings, sightingLook, unmetered } from './meter.ts'
import { pauser } from './pauser.ts'
import { placed } from './placed.ts'
import {
  addIdentities,
  findIdentities,
  foldedState,
  type keySupply,
  lockPositions,
  recordDecisions,
  saveMerges,
} from './store.ts'
import { saveMetered } from './usage-store.ts'

/** What the projector keeps between batches. */
export type Desk = {
  readonly pool: Pool
  readonly users: BoundedMap<number, UserState>
  /** By the identity’s text. Only what is stored; whether it still holds shows when the user is locked or written. */
  readonly identities: BoundedMap<string, number>
  /** From a user merged away to the one it became. */
  readonly merged: BoundedMap<number, number>
  readonly keys: ReturnType<typeof keySupply>
  /** `null` where nothing is metered. */
  readonly sightings: StoredSightings | null
  readonly usageKey: SipKey
  readonly suppressions: Suppressions
  readonly yieldMs: number
  plan: Plan
  /** The highest receivedAt folded by this process, epoch ms. */
  folded: number
  /** So many more batches lock their users before they are folded. */
  lockFirst: number
  /** Users of the batch being written: they come back to the cache after its commit. */
  inHand: ReadonlyMap<number, UserState>
}

export const nobodyInHand: Desk['inHand'] = new Map()

export type Prepared = {
  readonly pieces: readonly Piece[]
  readonly plan: Plan
  /** By piece, then by call. */
  readonly calls: readonly (readonly Call[])[]
  readonly asked: ReadonlyMap<string, Identity>
  readonly known: ReadonlyMap<string, number>
}

/** Each of the written batch's dozen round trips may wait this long, in milliseconds. */
const prepareYieldMs = 1

/** Everything that can be done while the batch before is still being written. */
export const prepareBatch = async (
  desk: Desk,
  pieces: readonly Piece[],
  { fresh }: { readonly fresh: boolean },
): Promise<Prepared> => {
  const { plan } = desk
  const pause = pauser(prepareYieldMs)
  const asked = new Map<string, Identity>()
  const calls: Call[][] = []
  const look = desk.sightings === null ? unmetered : sightingLook(desk.sightings)
  for (const piece of pieces) {
    const read: Call[] = []
    calls.push(read)
    for (const { message, previous } of piece.calls) {
      const call = readCall(message, plan, { sighted: look(message), previous })
      read.push(call)
      for (const identity of identitiesOf(call.who)) asked.set(identity.text, identity)
      const order = readOrder(message)
      if (order !== null) asked.set(order.identity.text, order.identity)
      if (pause.due()) await pause.take()
    }
  }
  const known = new Map<string, number>()
  const missing: [string, Identity][] = []
  for (const [text, identity] of asked) {
    const key = fresh ? undefined : desk.identities.get(text)
    if (key === undefined) missing.push([text, identity])
    else known.set(text, key)
  }
  await desk.pool.transaction(async (tx) => {
    await pinPlans(tx)
    await findMissing(tx, desk, { known, missing })
    await readAhead(tx, desk, known)
  })
  return { pieces, plan, calls, asked, known }
}

type Search = {
  readonly known: Map<string, number>
  readonly missing: readonly (readonly [string, Identity])[]
}

const findMissing = async (tx: Sql, desk: Desk, { known, missing }: Search): Promise<void> => {
  const found = await findIdentities(
    tx,
    missing.map(([, identity]) => identity),
  )
  for (const [at, [text]] of missing.entries()) {
    const key = found[at] ?? null
    desk.identities.delete(text)
    if (key === null) continue
    known.set(text, key)
    desk.identities.set(text, key)
  }
}

/** Into the cache, so that a batch folds without asking for them. */
const readAhead = async (
  tx: Sql,
  desk: Desk,
  known: ReadonlyMap<string, number>,
): Promise<void> => {
  const cold = [...new Set(known.values())].filter(
    (key) => !desk.inHand.has(key) && desk.users.get(key) === undefined,
  )
  // The batch before may have stored a newer one meanwhile.
  for (const user of await readUsers(tx, cold))
    if (desk.users.get(user.key) === undefined) desk.users.set(user.key, user)
}

/** Why a batch was rolled back: each is expected, and its answer is to go on differently. */
export type Unwound =
  /** Somebody else has these partitions. */
  | { readonly type: 'lost'; readonly lanes: readonly Lane[] }
  /** An earlier try was committed although its answer never came. */
  | { readonly type: 'committed' }
  /** The plan or an identity changed after the batch was prepared. */
  | { readonly type: 'stale'; readonly plan: Plan | null }

export const unwind = (why: Unwound) => Object.assign(new Error(why.type), { code: 'unwound', why })

export const unwoundBy = (error: unknown): Unwound | null =>
  (error as { code?: unknown } | null)?.code === 'unwound' ? (error as { why: Unwound }).why : null

/** How far each lane of the batch moves. */
export type Moves = ReadonlyMap<Lane, { readonly next: bigint; readonly folded: number }>

export const movesOf = (pieces: readonly Piece[]): Moves => {
  const moves = new Map<Lane, { next: bigint; folded: number }>()
  for (const { lane, next, calls } of pieces) {
    let folded = moves.get(lane)?.folded ?? lane.folded
    for (const { message } of calls) folded = Math.max(folded, message.receivedAt)
    moves.set(lane, { next, folded })
  }
  return moves
}

export type Written = Folded & {
  readonly at: number
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
  /** Told when what is left is mostly Postgres’s to do. */
  readonly decided: () => void
}

/** One transaction: positions, users, memberships, usage and duplicates, or none of it. */
export const writeBatch = (desk: Desk, batch: Batch): Promise<Written> =>
  desk.pool.transaction(async (tx) => {
    const { prepared, verdicts, moves } = batch
    const { plan } = prepared
    await openWriting(tx, { moves, plan })
    const known = knownNow(desk, prepared)
    const held = await holdUsers(tx, desk, known)
    if (held === null) throw unwind({ type: 'stale', plan: null })
    const { users } = held
    desk.inHand = users
    await desk.keys.stock(prepared.asked.size)
    const at = highestOf(desk, moves)
    const calls = placed({ ...prepared, verdicts }, desk.suppressions)
    const { yieldMs } = desk
    const folding = openFolding({ plan, known, users, newKey: desk.keys.next, yieldMs })
    await folding.add(calls)
    const folded = await folding.finish(at)
    batch.decided()
    const orders = ordersIn(calls)
    await lockDecided(tx, { folded, held, orders })
    await saveVerdicts(tx, [...verdicts.values()])
    await saveFolded(tx, { folded, plan, at })
    await saveDeletions(tx, calls)
    const metered = meterBatch(calls, { key: desk.usageKey })
    await saveMetered(tx, metered, writerOf(moves))
    const erased = await eraseUsers(tx, { orders, known, locked: users, folded, plan })
    return { ...folded, at, held: users, erased, metered }
  })

/** The instant that a batch is evaluated at: the highest receivedAt there was. */
export const highestOf = (desk: Desk, moves: Moves): number =>
  Math.max(desk.folded, ...[...moves.values()].map(({ folded }) => folded))

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

type Saving = { readonly folded: Folded; readonly plan: Plan; readonly at: number }

/** Users, who is who, and memberships. */
export const saveFolded = async (tx: Connection, { folded, plan, at }: Saving): Promise<void> => {
  // First, because a tie that is new comes with a new `ver` of its user.
  const tied = await saveTies(tx, folded, plan)
  if (!(await replaceUsers(tx, tied, plan))) throw unwind({ type: 'stale', plan: null })
  if (!(await addIdentities(tx, folded.identities))) throw unwind({ type: 'stale', plan: null })
  await saveMerges(tx, folded)
  await recordDecisions(tx, folded)
  await saveFlips(tx, { flips: folded.flips.filter(({ mark }) => !mark), at: new Date(at) })
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
