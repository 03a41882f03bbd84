// Proving that folding the log anew comes to the live state: both are looked at where they stand at the same
// offset of every partition. Live goes on meanwhile.
import { loadPlan, planVersion } from '../audience/plan.ts'
import type { Connection } from '../postgres/sql.ts'
import { highestFolded } from '../project/build-store.ts'
import { compareStates } from './compare.ts'
import type { RebuildDeps } from './deps.ts'
import type { Fold } from './fold.ts'
import { type Comparison, readPositions } from './store.ts'

/** The snapshot is kept as long as the comparison takes. */
const keptMs = 600_000

const now = async (): Promise<void> => undefined

export const verify = async (
  deps: RebuildDeps,
  fold: Fold,
  signal: AbortSignal,
): Promise<Comparison> => {
  for (;;) {
    const found = await deps.pool.transaction((tx) => compareIn(deps, { tx, fold, signal }), {
      isolation: 'repeatable read',
    })
    if (found !== null) return found
  }
}

type Here = { readonly tx: Connection; readonly fold: Fold; readonly signal: AbortSignal }

/** `null`: an audience went meanwhile, and the two are worked out by different plans. */
const compareIn = async (
  { clock, limits }: RebuildDeps,
  { tx, fold, signal }: Here,
): Promise<Comparison | null> => {
  await tx.query(`set local idle_in_transaction_session_timeout = ${keptMs}`)
  const live = await readPositions(tx)
  const plan = await loadPlan(tx)
  await fold.foldUntil(live, { signal, pace: now })
  const at = Math.max(clock().getTime(), await highestFolded(tx), fold.folded())
  const found = await fold.pool.connect((rebuilt) =>
    compareStates({
      live: tx,
      rebuilt,
      plan,
      at,
      pageMax: limits.comparePageMax,
      differencesMax: limits.differencesMax,
      signal,
    }),
  )
  if ((await planVersion(fold.pool)) !== plan.version) return null
  return { at: new Date(at), ...found }
}
