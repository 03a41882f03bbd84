// A reader's membership of a group, taken up anew when the reader's own fence says that a partition is
// somebody else's while the log still gives it to this process.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, Membership } from './log/log.ts'

export type Holding = Membership & {
  /**
   * The lease's position has another owner. Usually the log says so too, soon. Where it does not, an owner of
   * before was slow to gain and took the epoch after us: then nobody reads the partition, until we join again.
   */
  fenced(lease: Lease): void
}

/** Longer than a rebalance takes to reach everybody. */
const graceMs = 2_000

export const holdMembership = (join: () => Membership): Holding => {
  const end = Promise.withResolvers<void>()
  end.promise.catch(() => undefined)
  const stopping = new AbortController()
  const enter = () => {
    const membership = join()
    membership.done.catch(end.reject)
    return membership
  }
  let current = enter()
  let again: Promise<void> | null = null
  let stopped: Promise<void> | null = null
  const joinAgain = async (lease: Lease) => {
    const signal = AbortSignal.any([lease.lost, stopping.signal])
    await sleep(graceMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    await current.stop()
    if (!stopping.signal.aborted) current = enter()
  }
  const stop = async () => {
    stopping.abort()
    await again
    await current.stop()
    end.resolve()
  }
  return {
    fenced: (lease) => {
      again ??= joinAgain(lease)
        .catch(end.reject)
        .finally(() => {
          again = null
        })
    },
    stop: () => {
      stopped ??= stop()
      return stopped
    },
    done: end.promise,
  }
}
