// The swap: under the locks of the projector's positions the rebuilt tables take the place of the live ones.
//
// Positions keep their epochs, and nobody loses a partition: a projector whose batch was prepared before sees
// that the plan has another version, and finds its users anew, by identities. Users' keys of before are given
// to nobody again, so that nothing a process remembers of them can be taken for somebody else.
import { openSweep } from '../audience/sweep.ts'
import { type Connection, replayed, sqlState } from '../postgres/sql.ts'
import { bumpPlan, lockAllPositions, readPlanRow } from '../project/build-store.ts'
import type { RebuildDeps } from './deps.ts'
import type { Fold } from './fold.ts'
import { copyMarks } from './marks.ts'
import { formerOf, liveSchema, schemaOf } from './schema.ts'
import { type Rebuild, readPositions, turnRebuild } from './store.ts'
import { findTables } from './tables.ts'

type Swap = { readonly rebuild: Rebuild; readonly fold: Fold; readonly signal: AbortSignal }

const now = async (): Promise<void> => undefined

/** Whatever can be done while live goes on, so that little is left for the swap itself. */
export const prepareSwap = async (deps: RebuildDeps, { rebuild, fold }: Swap): Promise<void> => {
  const { clock, limits } = deps
  await sweepAll(fold, { at: new Date(Math.max(clock().getTime(), fold.folded())), limits })
  const sides = { live: await liveSchema(deps.pool), fresh: schemaOf(rebuild.id) }
  await fold.pool.transaction((tx) => copyMarks(tx, sides))
  const { swapped } = await findTables(deps.pool)
  await fold.pool.query(`analyze ${swapped.map((name) => `${sides.fresh}.${name}`).join(', ')}`)
}

type Sweep = { readonly at: Date; readonly limits: RebuildDeps['limits'] }

/** Whom time alone changed: live they were looked at again by each sync. */
const sweepAll = async ({ pool }: Fold, { at, limits }: Sweep): Promise<void> => {
  const { rows } = await pool.query<{ shard: number }>(
    'select distinct shard from ustate where due <= $1',
    [at],
  )
  const limit = limits.sweepUsersMax
  const sweepDue = openSweep()
  for (const { shard } of rows)
    for (let swept = limit; swept >= limit; )
      swept = await replayed(limits.project.replaysMax, () =>
        pool.transaction((tx) => sweepDue(tx, { shard, at, limit })),
      )
}

/** `over`: cancelled before it could be; `waitsFor`: why it is to be tried again later. */
type Tried = 'swapped' | 'over' | { readonly waitsFor: string }

export const trySwap = async (deps: RebuildDeps, swap: Swap): Promise<Tried> => {
  const late = AbortSignal.timeout(deps.limits.stillMsMax)
  const signal = AbortSignal.any([swap.signal, late])
  try {
    return await deps.pool.transaction((tx) => swapIn(deps, tx, { ...swap, signal }))
  } catch (error) {
    const { waitsFor } = error as { waitsFor?: string }
    if (waitsFor !== undefined) return { waitsFor }
    if (late.aborted && !swap.signal.aborted)
      return { waitsFor: 'live moves faster than it can be followed' }
    const state = sqlState(error)
    if (state === '55P03' || state === '40P01' || state === '40001')
      return { waitsFor: 'a table is in use' }
    throw error
  }
}

/** Rolls back what was begun. */
const waiting = (waitsFor: string) => Object.assign(new Error(waitsFor), { waitsFor })

const swapIn = async (
  deps: RebuildDeps,
  tx: Connection,
  swap: Swap,
): Promise<'swapped' | 'over'> => {
  const { rebuild, fold, signal } = swap
  await tx.query(`set local lock_timeout = ${deps.limits.lockMsMax}`)
  // First, so that nobody cancels it any more; else there is nothing to do.
  const turn = { id: rebuild.id, from: 'swapping', to: 'swapped', at: deps.clock() } as const
  if (!(await turnRebuild(tx, turn))) return 'over'
  const busy = await holdSync(tx)
  if (busy !== null) throw waiting(busy)
  await lockAllPositions(tx)
  await fold.foldUntil(await readPositions(tx), { signal, pace: now })
  const live = await liveSchema(tx)
  const { swapped } = await findTables(tx)
  const names = swapped.map((name) => `${live}.${name}`).join(', ')
  await tx.query(`lock table ${names} in access exclusive mode`)
  // What a sync is just gathering there must be seen when the counts are taken afresh.
  await tx.query(`lock table ${live}.membership_change in share row exclusive mode`)
  await copyMarks(tx, { live, fresh: schemaOf(rebuild.id) })
  await exchange(tx, { live, rebuild, tables: swapped })
  await bumpPlan(tx, await readPlanRow(tx))
  signal.throwIfAborted()
  return 'swapped'
}

/** 'MILLACCT' read as a number: sync's transactions on accounts hold it. */
const accountsKey = '5567930463015535444'

/**
 * No run is open, and none opens before the swap is over: a run pages through users by keys, and compares in
 * snapshots. Why not, if one is.
 */
const holdSync = async (tx: Connection): Promise<string | null> => {
  await tx.query(
    `lock table sync_run, sync_destination, retraction in share row exclusive mode;
     select pg_advisory_xact_lock(${accountsKey})`,
  )
  const { rows } = await tx.query<{ busy: string | null }>(
    `select case
       when exists (select 1 from sync_run where state = 'running') then 'a sync is running'
       when exists (select 1 from sync_destination where after > 0)
         then 'a destination is being told of members'
       when exists (select 1 from retraction) then 'a deleted audience is being taken back'
       when exists (select 1 from deletion_request where state in ('received', 'running'))
         then 'users are being erased'
       when exists (select 1 from audience_build) then 'an audience is being built' end as busy`,
  )
  return rows[0]?.busy ?? null
}

type Exchange = {
  readonly live: string
  readonly rebuild: Rebuild
  readonly tables: readonly string[]
}

/** With their indexes, constraints and sequences. */
const exchange = async (tx: Connection, { live, rebuild, tables }: Exchange): Promise<void> => {
  const [fresh, former] = [schemaOf(rebuild.id), formerOf(rebuild.id)]
  await tx.query(`create schema ${former}`)
  await tx.query(
    tables
      .flatMap((name) => [
        `alter table ${live}.${name} set schema ${former}`,
        `alter table ${fresh}.${name} set schema ${live}`,
      ])
      .join(';'),
  )
  // Triggers stay with the former table.
  await tx.query('select watch_membership()')
}
