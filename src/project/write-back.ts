// Many batches folded into users that are written once, with the positions: for calls nobody waits for, into
// tables nobody else writes. A user with many calls among them costs one write.
import { saveVerdicts } from '../duplicate/duplicates.ts'
import { lockDecided, openWriting, saveFolded } from './batch.ts'
import { madeBy } from './decide.ts'
import { type Desk, nobodyInHand } from './desk.ts'
import { eraseUsers, ordersIn, type PlacedOrder } from './erase.ts'
import { openFolding } from './fold.ts'
import { openHolding } from './holding.ts'
import { judge } from './judge.ts'
import type { Lane } from './lanes.ts'
import { highestOf, movesOf } from './moves.ts'
import { placed } from './placed.ts'
import type { Prepared } from './prepare.ts'
import { remember } from './remember.ts'

export type WriteBack = {
  /** Folds a batch that follows the one before; in memory alone, but for what its duplicates are judged by. */
  add(prepared: Prepared): Promise<void>
  /** What it holds, in bytes: about, and rather more than less. */
  bytes(): number
  /** Writes all of it or none of it. Nothing is added after it. */
  write(): Promise<void>
}

const noKeys: Awaited<ReturnType<Desk['keys']['reserve']>> = {
  next: () => {
    throw new Error('a key was taken that nobody reserved')
  },
  release: () => undefined,
}

/** A user on the heap besides the packed bytes: summaries decoded, and what is to be looked at. */
const userBytes = 1_500

export const openWriteBack = (desk: Desk): WriteBack => {
  const { plan, pool, yieldMs } = desk
  const holding = openHolding(desk)
  const { known, users } = holding
  const moves = new Map<Lane, { readonly next: bigint; readonly folded: number }>()
  const orders: PlacedOrder[] = []
  const folding = openFolding({ plan, known, users, newKey: () => keys.next(), yieldMs })
  let keys = noKeys
  let bytes = 0
  desk.inHand = [users]
  desk.isMaking = folding.makes
  return {
    add: async (prepared) => {
      const verdicts = await judge(prepared.pieces)
      // Ahead of the positions: what is stored beyond them is not looked at by who starts there.
      await saveVerdicts(pool, [...verdicts.values()])
      for (const verdict of verdicts.values()) verdict.accept()
      await holding.take(prepared, folding.makes)
      keys = await desk.keys.reserve(prepared.asked.size)
      const calls = placed({ ...prepared, verdicts }, desk.suppressions)
      await folding.add(calls).finally(keys.release)
      orders.push(...ordersIn(calls))
      for (const [lane, { next, folded }] of movesOf(prepared.pieces))
        moves.set(lane, { next, folded: Math.max(folded, moves.get(lane)?.folded ?? 0) })
      // No call adds more to its user than it holds.
      for (const { message } of calls) bytes += message.body.byteLength
    },
    bytes: () => bytes + holding.bytes() + folding.users() * userBytes,
    write: async () => {
      const at = highestOf(desk, moves)
      const folded = await folding.finish(at)
      const erased = await pool.transaction(async (tx) => {
        await openWriting(tx, { moves, plan })
        await lockDecided(tx, { folded, held: { users, locked: false }, orders })
        await saveFolded(tx, { folded, plan, at, made: madeBy(folded), packed: null })
        return eraseUsers(tx, { orders, known, locked: users, folded, plan })
      })
      remember(desk, moves, { ...folded, held: users, erased })
      Object.assign(desk, nobodyInHand)
    },
  }
}
