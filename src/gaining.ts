// Gaining a partition while Postgres or the log is away: nobody reads it meanwhile, and the process lives on.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Lease, Reader } from './log/log.ts'
import { isAway } from './postgres/away.ts'

export type Gaining = {
  readonly lease: Lease
  /** Aborts when the stage stops. */
  readonly stopping: AbortSignal
  /** Between two tries, in milliseconds. */
  readonly retryMs: number
  readonly logger: Logger
}

/** Tries for as long as the lease stands: another process could do no better. */
export const gainInTime = async (
  { lease, stopping, retryMs, logger }: Gaining,
  gain: () => Promise<Reader>,
): Promise<Reader> => {
  const over = AbortSignal.any([lease.lost, stopping])
  for (;;) {
    try {
      return await gain()
    } catch (error) {
      if (!isAway(error) || lease.lost.aborted) throw error
      if (stopping.aborted) return readsNothing(lease)
      const { topic, partition } = lease
      logger.warn({ err: error, topic, partition }, 'partition.not_gained')
      await sleep(retryMs, undefined, { signal: over }).catch(() => undefined)
    }
  }
}

/** What is handed to it stays where it is, to be read by the next who gains the partition. */
const readsNothing = ({ committed }: Lease): Reader => ({
  from: committed ?? 0n,
  handle: async () => undefined,
})
