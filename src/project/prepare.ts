// What can be done of a batch before its transaction, while the one before is still being written.
import type { Plan } from '../audience/plan.ts'
import { readPacked } from '../audience/rows.ts'
import { pinPlans } from '../audience/store.ts'
import { readOrder } from '../domain/erasure.ts'
import type { Identity } from '../domain/identity.ts'
import type { Connection, Sql } from '../postgres/sql.ts'
import { type Call, identitiesOf, readCall } from './call.ts'
import type { Desk } from './desk.ts'
import type { Piece } from './lanes.ts'
import { sightingLook, unmetered } from './meter.ts'
import { pauser } from './pauser.ts'
import { findIdentities } from './store.ts'

export type Prepared = {
  readonly pieces: readonly Piece[]
  readonly plan: Plan
  /** By piece, then by call. */
  readonly calls: readonly (readonly Call[])[]
  readonly asked: ReadonlyMap<string, Identity>
  readonly known: ReadonlyMap<string, number>
  /** Those that were being made when it was prepared, and so were not looked up. */
  readonly unasked: ReadonlyMap<string, Identity>
}

/** Each of the written batch's dozen round trips may wait this long for what is done beside it, in milliseconds. */
export const besideMs = 1

/** Everything that can be done while the batch before is still being written. */
export const prepareBatch = async (
  desk: Desk,
  pieces: readonly Piece[],
  { fresh }: { readonly fresh: boolean },
): Promise<Prepared> => {
  const { plan } = desk
  const pause = pauser(besideMs)
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
  return { pieces, plan, calls, asked, ...(await readAsked(desk, asked, fresh)) }
}

/** Who is who as it is stored, and those users, into the cache. */
const readAsked = async (
  desk: Desk,
  asked: Prepared['asked'],
  fresh: boolean,
): Promise<Pick<Prepared, 'known' | 'unasked'>> => {
  const known = new Map<string, number>()
  const missing: [string, Identity][] = []
  const unasked = new Map<string, Identity>()
  for (const [text, identity] of asked) {
    const key = fresh ? undefined : desk.identities.get(text)
    if (key !== undefined) known.set(text, key)
    else if (desk.isMaking(text)) unasked.set(text, identity)
    else missing.push([text, identity])
  }
  await desk.pool.transaction(async (tx) => {
    await pinPlans(tx)
    await findMissing(tx, desk, { known, missing })
    await readAhead(tx, desk, known)
  })
  return { known, unasked }
}

type Search = {
  readonly known: Map<string, number>
  readonly missing: readonly (readonly [string, Identity])[]
}

export const findMissing = async (
  tx: Sql,
  desk: Desk,
  { known, missing }: Search,
): Promise<void> => {
  // Not after the query: by then the batch before may have stored them.
  for (const [text] of missing) desk.identities.delete(text)
  const found = await findIdentities(
    tx,
    missing.map(([, identity]) => identity),
  )
  for (const [at, [text]] of missing.entries()) {
    const key = found[at] ?? null
    if (key === null) continue
    known.set(text, key)
    desk.identities.set(text, key)
  }
}

/** Into the cache, so that a batch folds without asking for them. */
const readAhead = async (
  tx: Connection,
  desk: Desk,
  known: ReadonlyMap<string, number>,
): Promise<void> => {
  const cold = [...new Set(known.values())].filter(
    (key) => !desk.inHand.some((users) => users.has(key)) && !desk.users.keep(key),
  )
  // The batch before may have stored a newer one meanwhile.
  desk.users.addPacked(await readPacked(tx, cold))
}
