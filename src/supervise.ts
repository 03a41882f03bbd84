// Watches the parts of a process: they stop in one order, and the death of one ends them all.
import type { Logger } from 'pino'
import type { Running } from './running.ts'

export const stopLimits = {
  /** Of one part: delivery may wait 10 s for the rounds it has in flight. */
  partMs: 12_000,
  /** Of all parts together; a part whose turn comes later still gets `leastMs`. */
  totalMs: 26_000,
  leastMs: 500,
}

export type Part = { readonly name: string; readonly running: Running }

/** `parts` in the order they stop. `done` rejects with the first part's death, once all have stopped. */
export const supervise = (parts: readonly Part[], logger: Logger, limits = stopLimits): Running => {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  // Whoever starts a process may look at `done` only after the start.
  done.catch(() => undefined)
  let ending = false
  let death: { readonly error: unknown } | null = null
  const end = async () => {
    const deadline = performance.now() + limits.totalMs
    for (const { name, running } of parts) {
      const began = performance.now()
      const left = Math.max(limits.leastMs, Math.min(limits.partMs, deadline - began))
      try {
        await within(running.stop(), left)
        const durationMs = Math.round(performance.now() - began)
        logger.debug({ part: name, durationMs }, 'part.stopped')
      } catch (error) {
        // The rest must stop all the same; the error is told by `done`.
        logger.error({ part: name, err: error }, 'part.failed')
        death ??= { error }
      }
    }
    if (death) reject(death.error)
    else resolve()
  }
  const stop = () => {
    if (!ending) void end()
    ending = true
    return done
  }
  for (const { name, running } of parts)
    running.done.catch((error: unknown) => {
      if (death) return
      death = { error }
      logger.error({ part: name, err: error }, 'part.died')
      stop().catch(() => undefined)
    })
  return { stop, done }
}

/** A thing that only has to be closed, as a part. */
export const closing = (
  name: string,
  close: () => Promise<unknown>,
  died?: Promise<void>,
): Part => ({
  name,
  running: {
    stop: async () => {
      await close()
    },
    done: died ?? new Promise(() => undefined),
  },
})

const within = (stopping: Promise<void>, ms: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const late = () => reject(new Error(`it did not stop within ${Math.round(ms)} ms`))
    const timer = setTimeout(late, ms)
    stopping.then(resolve, reject).finally(() => clearTimeout(timer))
  })
