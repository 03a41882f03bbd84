// Looking again at users whose timer has run out, inside the caller's transaction: the sync's chunks.
import type { Connection } from '../postgres/sql.ts'
import { assess, type Flip } from './assess.ts'
import { unpackUser } from './pack.ts'
import { openPlans } from './plan.ts'
import { lockUsersDue, prepareSession, saveFlips, saveUsers } from './store.ts'

type Sweep = {
  readonly shard: number
  /** Not before anything folded so far: the highest receivedAt of all positions, or later. */
  readonly at: Date
  readonly limit: number
}

/**
 * Re-evaluates users of the shard with due ≤ at and returns how many there were; fewer than `limit`
 * means none is left. Under REPEATABLE READ it raises 40001 where the projector wrote meanwhile.
 */
export type SweepDue = (tx: Connection, sweep: Sweep) => Promise<number>

export const openSweep = (): SweepDue => {
  const plans = openPlans()
  return async (tx, sweep) => {
    await prepareSession(tx)
    const rows = await lockUsersDue(tx, sweep)
    if (rows.length === 0) return 0
    const plan = await plans(tx)
    const flips: Flip[] = []
    const users = rows.map((row) => {
      const user = unpackUser(row)
      const audiences = plan.workspaces.get(user.workspaceId)?.audiences ?? []
      flips.push(...assess(user, { audiences, at: sweep.at.getTime(), whole: true }))
      return user
    })
    await saveUsers(tx, users, plan)
    await saveFlips(tx, { flips, at: sweep.at })
    return rows.length
  }
}
