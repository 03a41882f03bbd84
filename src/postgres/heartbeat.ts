// Tells the other processes that this one lives and which configuration it has taken up.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { repeat } from '../repeat.ts'
import type { Clock, Running } from '../running.ts'
import type { Sql } from './sql.ts'

export const heartbeatLimits = {
  beatEveryMs: 2_000,
  /** Rows not renewed for this long are removed. */
  expireAfterMs: 60_000,
}

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly version: string
  readonly roles: readonly string[]
  readonly configurationVersion: () => bigint
  /** Of the suppressions in force here; 0 when absent. */
  readonly suppressionVersion?: () => bigint
  /** A beat was not written; the next one follows. */
  readonly onError: (error: unknown) => void
  readonly limits?: Partial<typeof heartbeatLimits>
}

export const startHeartbeat = async (deps: Deps): Promise<Running> => {
  const limits = { ...heartbeatLimits, ...deps.limits }
  const id = randomUUID()
  const startedAt = deps.clock()
  await beat(deps, { id, startedAt, expireAfterMs: limits.expireAfterMs })
  const beating = repeat(limits.beatEveryMs, () =>
    beat(deps, { id, startedAt, expireAfterMs: limits.expireAfterMs }).catch(deps.onError),
  )
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const end = async () => {
    await beating.stop()
    await deps.sql.query('delete from process where id = $1', [id]).catch(deps.onError)
    resolve()
  }
  let ending: Promise<void> | null = null
  return {
    done,
    stop: () => {
      ending ??= end()
      return ending
    },
  }
}

type Beat = { readonly id: string; readonly startedAt: Date; readonly expireAfterMs: number }

const beat = async (deps: Deps, { id, startedAt, expireAfterMs }: Beat): Promise<void> => {
  const at = deps.clock()
  await deps.sql.query(
    `insert into process (id, host, pid, version, roles, configuration_version, started_at, beat_at, suppression_version)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (id) do update
        set configuration_version = excluded.configuration_version, beat_at = excluded.beat_at,
            suppression_version = excluded.suppression_version`,
    [
      id,
      hostname(),
      process.pid,
      deps.version,
      deps.roles,
      String(deps.configurationVersion()),
      startedAt,
      at,
      String(deps.suppressionVersion?.() ?? 0n),
    ],
  )
  await deps.sql.query('delete from process where beat_at < $1', [
    new Date(at.getTime() - expireAfterMs),
  ])
}
