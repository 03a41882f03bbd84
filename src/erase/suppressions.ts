// The suppressions of one process: all of them in memory, renewed every second from Postgres.
import { hashBytes, judgeOf, openSuppressedSet } from '../domain/suppressed-set.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { Sql } from '../postgres/sql.ts'
import { repeat } from '../repeat.ts'
import { hashOf, loadSuppressionKey } from './key.ts'
import { loadSuppressions, readVersion, type StoredSuppression } from './suppression-store.ts'

export const suppressionLimits = {
  /** With the heartbeat's 2 s and the eraser's half a second this stays below 5 s. */
  pollEveryMs: 1_000,
  rowsAtOnce: 10_000,
}

type Deps = {
  readonly sql: Sql
  /** They could not be renewed: the ones there are hold on. */
  readonly onError: (error: unknown) => void
  readonly limits?: Partial<typeof suppressionLimits>
}

export type OpenSuppressions = Suppressions & {
  /** What the heartbeat tells: every suppression up to it is in force here. */
  version(): bigint
  /** Now, rather than with the next look. */
  renew(): Promise<void>
  close(): Promise<void>
}

/** Resolves when all there are at the start are in memory. */
export const openSuppressions = async (deps: Deps): Promise<OpenSuppressions> => {
  const { sql, onError } = deps
  const limits = { ...suppressionLimits, ...deps.limits }
  const set = openSuppressedSet()
  const key = await loadSuppressionKey(sql)
  let version = 0n
  const renew = async () => {
    const wanted = await readVersion(sql)
    if (wanted === version) return
    let after: Pick<StoredSuppression, 'version' | 'hash'> = {
      version,
      hash: Buffer.alloc(hashBytes, 0xff),
    }
    for (;;) {
      const rows = await loadSuppressions(sql, after, limits.rowsAtOnce)
      for (const row of rows) set.put(row.hash, untilOf(row))
      const last = rows.at(-1)
      if (last === undefined || rows.length < limits.rowsAtOnce) break
      after = last
    }
    version = wanted
  }
  await renew()
  const renewing = repeat(limits.pollEveryMs, () => renew().catch(onError))
  const isSuppressed = judgeOf(set, key)
  const hashOfForgotten: OpenSuppressions['hashOfForgotten'] = (workspaceId, kind, value) => {
    if (set.size === 0) return null
    const hash = hashOf(key, { workspaceId, kind, value })
    return set.until(hash) === Number.NEGATIVE_INFINITY ? null : hash
  }
  return { isSuppressed, hashOfForgotten, version: () => version, renew, close: renewing.stop }
}

const untilOf = ({ suppressed, deletedBefore }: StoredSuppression): number =>
  suppressed ? Number.POSITIVE_INFINITY : (deletedBefore?.getTime() ?? Number.NEGATIVE_INFINITY)
