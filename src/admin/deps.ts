// What the admin API is given: it opens nothing itself.
import type { Logger } from 'pino'
import type { Keyring } from '../control/secret.ts'
import type { searchAttempts } from '../deliver/attempt-store.ts'
import type { Live } from '../domain/configuration.ts'
import type { Message } from '../domain/message.ts'
import type { Suppressions } from '../domain/suppression.ts'
import type { AddressRules } from '../http/addresses.ts'
import type { Post } from '../http/post.ts'
import type { Imports } from '../import/imports.ts'
import type { Codec, Source } from '../log/log.ts'
import type { Pool, Sql } from '../postgres/sql.ts'
import type { countReplay } from '../replay/count.ts'
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
  /** Recoveries that run or are paused, of all destinations. */
  recoveriesMax: 100,
  bodyBytesMax: 4_194_304,
  /** How long one dry run of a replay counts before it answers with what it has. */
  replayCountMsMax: 5_000,
  /** At a time: each reads many users. */
  previewsMax: 2,
  /** A sync that takes longer is answered 202 and can be asked after. */
  syncWaitMsMax: 600_000,
  syncPollMs: 20,
  /** Requests in hand when the stage stops; then their connections are cut. */
  drainMsMax: 5_000,
  /** A stream whose client takes nothing of it for this long is cut. */
  stalledMsMax: 60_000,
  /** What its client may take to read the end of a stream when the stage stops. */
  partingMsMax: 1_000,
  /** Then a stream ends and its client resumes it, with a token that must still be good. */
  streamMsMax: 600_000,
}

export type AdminDeps = {
  readonly pool: Pool
  readonly live: Live
  /** Brings `live` up to what was just saved; absent: it follows by itself. */
  refresh?(): Promise<void>
  readonly clock: Clock
  readonly logger: Logger
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Where webhooks may go. */
  readonly addresses: AddressRules
  readonly keyring: Keyring
  requestSync(
    sql: Sql,
    request: {
      readonly audienceIds: readonly number[]
      readonly at: Date
      readonly allMembers?: boolean
    },
  ): Promise<number>
  findSyncRun(sql: Sql, id: number): Promise<SyncRun | null>
  /** The attempt log is the deliver stage's. */
  readonly searchAttempts: typeof searchAttempts
  /** What previews read past calls from; absent: they are answered from what is kept of users alone. */
  readonly source?: Source
  readonly codecs?: { readonly call: Codec<Message> }
  /** Takes past calls; absent: this process takes none. */
  readonly imports?: Imports
  /** Counts what a replay would send; absent: nobody here does. */
  readonly countReplay?: typeof countReplay
  readonly suppressions?: Suppressions
  /** Posts test messages; absent: this process posts nothing. */
  readonly post?: Post
  /** What GET /metrics answers. */
  readonly metrics?: { readonly contentType: string; text(): Promise<string> }
  /** Whether the stages of this process are up; Postgres is asked besides. */
  isReady?(): boolean | Promise<boolean>
  readonly version?: string
  readonly limits?: Partial<typeof adminLimits>
}
