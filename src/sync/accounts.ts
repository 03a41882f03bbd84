// Before a run compares memberships of audiences of accounts: what users changed of their accounts is
// added up, and the users of accounts that came to pass or to fail get their memberships.
import { replayed } from '../postgres/sql.ts'
import {
  addUp,
  areAccountsAsked,
  type Backlog,
  dueShards,
  followTurns,
  followVisits,
  readBacklog,
  readInstant,
} from './account-store.ts'
import type { Run } from './chunk.ts'
import type { Term } from './term.ts'

/** Whom time alone changed comes first, so that accounts are judged as of one time. */
export const settleAccounts = async (term: Term, run: Run): Promise<void> => {
  if (!(await areAccountsAsked(term.seat, [...run.audiences.keys()]))) return
  await sweepAll(term)
  await follow(term, await readBacklog(term.seat))
}

/** Without a run that asks for them, too, changes may not pile up. */
export const keepAccountsShort = async (term: Term): Promise<void> => {
  const backlog = await readBacklog(term.seat)
  if (backlog.length >= term.deps.limits.accountBacklogMax) await follow(term, backlog)
}

const sweepAll = async (term: Term): Promise<void> => {
  const { pool, clock, limits, sweepDue } = term.deps
  const { shards, chunkUsersMax: limit } = limits
  const at = await readInstant(term.seat, clock())
  for (const shard of await dueShards(term.seat, { at, shards })) {
    const sweep = () =>
      pool.transaction(
        async (tx) => sweepDue(tx, { shard, at: await readInstant(tx, clock()), limit }),
        { isolation: 'repeatable read' },
      )
    for (let swept = limit; swept >= limit; ) {
      term.signal.throwIfAborted()
      swept = await replayed(limits.chunkReplaysMax, sweep)
    }
  }
}

/** All changes first, then who is concerned: an account that turned and turned back concerns nobody. */
const follow = async (term: Term, { delta, visit }: Backlog): Promise<void> => {
  const { pool, clock, limits } = term.deps
  const at = await readInstant(term.seat, clock())
  const step = async (run: Parameters<typeof pool.transaction<boolean>>[0]): Promise<boolean> => {
    term.signal.throwIfAborted()
    return replayed(limits.chunkReplaysMax, () => pool.transaction(run))
  }
  const limit = limits.accountUsersMax
  while (await step((tx) => addUp(tx, { until: delta, limit: limits.accountDeltasMax })));
  while (await step((tx) => followTurns(tx, { limit, at })));
  while (await step((tx) => followVisits(tx, { until: visit, limit, at })));
}
