// Lets waiting code know that something may have changed; waits always end.

export type Signal = {
  ring(): void
  /** Resolves at the next ring, or after `ms`. */
  wait(ms: number): Promise<void>
}

export const openSignal = (): Signal => {
  let waiting: (() => void)[] = []
  return {
    ring: () => {
      if (waiting.length === 0) return
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    },
    wait: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
        if (waiting.length > 4_096) waiting = waiting.slice(-2_048)
      }),
  }
}
