// Work beside the line that is done every so often: one run at a time, and at most one more waiting.

export type Repeated = {
  /** Now, or once more after the run in hand, however many ask meanwhile. */
  run(): void
  /** As `run`; resolves when a run that began after this call has ended, or when there are no more. */
  ran(): Promise<void>
  /** No more runs; resolves when the one in hand has ended. */
  stop(): Promise<void>
}

/** `work` must not reject: only its owner knows what a failure means. */
export const repeat = (everyMs: number, work: () => Promise<unknown>): Repeated => {
  let inHand: Promise<void> | null = null
  let isWanted = false
  let isStopped = false
  let waiting: (() => void)[] = []
  const tell = (ended: readonly (() => void)[]) => {
    for (const resolve of ended) resolve()
  }
  const loop = async () => {
    do {
      isWanted = false
      const told = waiting
      waiting = []
      await work()
      tell(told)
    } while (isWanted)
    inHand = null
  }
  const run = () => {
    if (isStopped) return
    if (inHand === null) inHand = loop()
    else isWanted = true
  }
  const timer = setInterval(run, everyMs)
  return {
    run,
    ran: () =>
      new Promise((resolve) => {
        if (isStopped) return resolve()
        waiting.push(resolve)
        run()
      }),
    stop: async () => {
      isStopped = true
      isWanted = false
      clearInterval(timer)
      await inHand
      tell(waiting)
    },
  }
}
