// Lets waiting code know that something may have changed; waits always end.

export type Signal = {
  ring(): void
  /** Resolves at the next ring, or after `ms`. */
  wait(ms: number): Promise<void>
}

/** With `gatherMs`, rings within that time are one: a thing that changes all the time wakes few. */
export const openSignal = (gatherMs = 0): Signal => {
  const waiting = new Set<() => void>()
  let gathering = false
  const wakeAll = () => {
    gathering = false
    for (const wake of [...waiting]) wake()
  }
  return {
    ring: () => {
      if (waiting.size === 0 || gathering) return
      gathering = gatherMs > 0
      if (gathering) setTimeout(wakeAll, gatherMs)
      else wakeAll()
    },
    wait: (ms) =>
      new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer)
          waiting.delete(wake)
          resolve()
        }
        const timer = setTimeout(wake, ms)
        waiting.add(wake)
      }),
  }
}
