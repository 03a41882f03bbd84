// The one shape stages see of Postgres: a pool, a connection or a transaction alike.

export type Rows<R> = { readonly rows: R[]; readonly rowCount: number | null }

export type Sql = {
  query<R extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<Rows<R>>
}

/** One connection, for a transaction or for COPY. */
export type Connection = Sql & {
  /** COPY … FROM STDIN: resolves when the server has taken every chunk. */
  copyIn(text: string, chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void>
  /** COPY … TO STDOUT: all its messages, so the statement must bound what it answers. */
  copyOut(text: string): Promise<readonly Buffer[]>
}

export type Pool = Sql & {
  connect<R>(use: (connection: Connection) => Promise<R>): Promise<R>
  transaction<R>(work: (tx: Connection) => Promise<R>, options?: TransactionOptions): Promise<R>
  /** Calls back with the payload of every notification; reconnects by itself, calling `reconnected`. */
  listen(channel: string, listener: Listener): Promise<() => Promise<void>>
  close(): Promise<void>
}

export type TransactionOptions = {
  /** Postgres ends the session when nothing is asked in the transaction for so long; a minute when absent. */
  readonly idleMs?: number
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
}

/** For whoever locks positions: a process that is frozen meanwhile must not keep others from its partitions longer. */
export const holdsPositions = { idleMs: 10_000 } as const satisfies TransactionOptions

export type Listener = {
  readonly notified: (payload: string) => void
  /** After a lost connection was replaced: notifications in between are gone, so read again. */
  readonly reconnected: () => void
}

/**
 * SQLSTATE of a driver error, or `null`. 40P01 and 40001 mean: replay the transaction. No class of Postgres
 * begins with an E, as all codes of the operating system do: `EPIPE` is as long as an SQLSTATE.
 */
export const sqlState = (error: unknown): string | null => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null
}

export const isReplayable = (error: unknown): boolean => {
  const state = sqlState(error)
  return state === '40P01' || state === '40001'
}

/** Does a transaction again that Postgres asked to be done again, so many times at the most. */
export const replayed = async <R>(replaysMax: number, work: () => Promise<R>): Promise<R> => {
  for (let replays = 0; ; replays += 1) {
    try {
      return await work()
    } catch (error) {
      if (!isReplayable(error) || replays >= replaysMax) throw error
    }
  }
}
