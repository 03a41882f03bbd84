// What the admin API is given: it opens nothing itself.
import type { Logger } from 'pino'
import type { Live } from '../domain/configuration.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import type { Clock } from '../running.ts'

export type SyncRun = {
  readonly id: number
  readonly state: 'requested' | 'running' | 'finished' | 'failed'
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  readonly emitted: number
  readonly reason?: string | null
}

export const adminLimits = {
  bodyBytesMax: 4_194_304,
  /** A sync that takes longer is answered 202 and can be asked after. */
  syncWaitMsMax: 600_000,
  syncPollMs: 20,
  /** Requests in hand when the stage stops; then their connections are cut. */
  drainMsMax: 5_000,
}

export type AdminDeps = {
  readonly pool: Pool
  readonly live: Live
  readonly clock: Clock
  readonly logger: Logger
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  readonly allowPrivateDestinations: boolean
  requestSync(
    sql: Sql,
    request: { readonly audienceIds: readonly number[]; readonly at: Date },
  ): Promise<number>
  findSyncRun(sql: Sql, id: number): Promise<SyncRun | null>
  /** What GET /metrics answers. */
  readonly metrics?: { readonly contentType: string; text(): Promise<string> }
  /** Whether the stages of this process are up; Postgres is asked besides. */
  isReady?(): boolean | Promise<boolean>
  readonly version?: string
  readonly limits?: Partial<typeof adminLimits>
}
