// Tries again for as long as Postgres is away: the partition waits meanwhile, and the process lives on.
import { setTimeout as sleep } from 'node:timers/promises'
import { sqlState } from '../postgres/sql.ts'
import type { Stage } from './stage.ts'

/** The data or the statement is wrong: the same again would fail again. */
export const isHopeless = (error: unknown): boolean => /^(22|23|42)/.test(sqlState(error) ?? '')

type Trying = {
  /** Named in the log. */
  readonly what: string
  /** The work is nobody's any more: the last error is thrown. */
  readonly isOver: () => boolean
}

export const persist = async <T>(
  stage: Stage,
  { what, isOver }: Trying,
  work: () => Promise<T>,
): Promise<T> => {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (isHopeless(error) || !isDatabase(error) || isOver()) throw error
      stage.deps.logger.error({ err: error, what }, 'postgres.away')
      await sleep(stage.limits.pauseMs)
    }
  }
}

/** Of the driver, which names its errors, or says so when a connection ended; a bug must not be tried for ever. */
const isDatabase = (error: unknown): boolean =>
  !(error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
