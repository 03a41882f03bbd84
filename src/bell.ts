// A bell: wakes the one loop that waits for it, early, and remembers a ring that nobody waited for.

export type Bell = {
  ring(): void
  /** Resolves at the next ring, at once if it rang since the last wait, when aborted, or after `ms`. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export const hangBell = (): Bell => {
  let rung = false
  let wake: (() => void) | null = null
  return {
    ring: () => {
      rung = true
      wake?.()
    },
    wait: async (ms, signal) => {
      if (!rung && !signal.aborted)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
          signal.addEventListener('abort', wake, { once: true })
        })
      if (wake) signal.removeEventListener('abort', wake)
      wake = null
      rung = false
    },
  }
}
