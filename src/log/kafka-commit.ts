// Commits of a Kafka membership: one request in flight, waiting ones gathered into the next.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Place, placeOf } from './log.ts'

export type Committing = Place & {
  readonly next: bigint
  readonly lost: AbortSignal
}

export type Commits = {
  commit(committing: Committing): Promise<'committed' | 'lost'>
  /** Resolves when nothing is waiting. */
  settled(): Promise<void>
}

type Waiting = Committing & { answer(answer: 'committed' | 'lost'): void }

const retryMs = 200

/** `send` rejects when the group did not take the offsets: tried again until their leases are lost. */
export const gatherCommits = (send: (latest: readonly Committing[]) => Promise<void>): Commits => {
  let waiting: Waiting[] = []
  let flushing: Promise<void> | null = null
  const flush = async () => {
    // Commits made in one turn go together.
    await Promise.resolve()
    while (waiting.length > 0) {
      const part = waiting.filter((one) => {
        if (one.lost.aborted) one.answer('lost')
        return !one.lost.aborted
      })
      waiting = []
      if (part.length === 0) continue
      try {
        await send(latestOf(part))
        for (const one of part) one.answer('committed')
      } catch {
        // Whether to go on is the lease's word: it ends when the session does.
        waiting = [...part, ...waiting]
        await sleep(retryMs)
      }
    }
    flushing = null
  }
  return {
    commit: (committing) =>
      new Promise((answer) => {
        waiting.push({ ...committing, answer })
        flushing ??= flush()
      }),
    settled: async () => {
      while (flushing !== null) await flushing
    },
  }
}

const latestOf = (part: readonly Waiting[]): readonly Committing[] => [
  ...new Map(part.map((one) => [placeOf(one), one])).values(),
]
