// Counts the processes that collect and live, for what they share out among themselves.
import { repeat } from '../repeat.ts'
import type { Clock } from '../running.ts'
import type { Sql } from './sql.ts'

export const collectorsLimits = {
  /** As often as the configuration is looked at. */
  pollEveryMs: 1_500,
  /** A process that has not beaten for this long is taken for dead: five beats. */
  aliveMs: 10_000,
}

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  /** They were not counted: the last count holds. */
  readonly onError: (error: unknown) => void
  readonly limits?: Partial<typeof collectorsLimits>
}

export type Collectors = {
  /** At least one, which is also what is said while none was ever counted. */
  now(): number
  close(): Promise<void>
}

export const openCollectors = async (deps: Deps): Promise<Collectors> => {
  const { pollEveryMs, aliveMs } = { ...collectorsLimits, ...deps.limits }
  let live = 1
  const count = async () => {
    const since = new Date(deps.clock().getTime() - aliveMs)
    const { rows } = await deps.sql.query<{ readonly live: number }>(
      `select count(*)::int as live from process where 'collect' = any(roles) and beat_at >= $1`,
      [since],
    )
    live = Math.max(1, rows[0]?.live ?? 1)
  }
  await count().catch(deps.onError)
  const counting = repeat(pollEveryMs, () => count().catch(deps.onError))
  return { now: () => live, close: counting.stop }
}
