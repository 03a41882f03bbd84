// Who may post now: bounds what is in flight in all and by key, and no key's queue holds up another's.

export type Turns<Job> = {
  /** Starts the job at once, or when there is room. */
  enter(job: Job): void
  leave(job: Job): void
  waiting(): number
}

type Options<Job> = {
  readonly inFlightMax: number
  readonly perKeyMax: number
  readonly keyOf: (job: Job) => string
  readonly start: (job: Job) => void
}

export const openTurns = <Job>(options: Options<Job>): Turns<Job> => {
  const { inFlightMax, perKeyMax, keyOf, start } = options
  const inFlight = new Map<string, number>()
  const queues = new Map<string, Job[]>()
  let total = 0
  let waiting = 0
  const hasRoom = (key: string) => total < inFlightMax && (inFlight.get(key) ?? 0) < perKeyMax
  const admit = (key: string) => {
    total += 1
    inFlight.set(key, (inFlight.get(key) ?? 0) + 1)
  }
  const next = (): void => {
    for (const [key, queue] of queues) {
      if (!hasRoom(key)) continue
      const job = queue.shift() as Job
      // To the end of the round, so that keys take turns.
      queues.delete(key)
      if (queue.length > 0) queues.set(key, queue)
      waiting -= 1
      admit(key)
      // Not within the callback of the answer that made room: its parser is not done yet.
      queueMicrotask(() => start(job))
      return
    }
  }
  return {
    enter: (job) => {
      const key = keyOf(job)
      if (hasRoom(key)) {
        admit(key)
        start(job)
        return
      }
      waiting += 1
      const queue = queues.get(key)
      if (queue) queue.push(job)
      else queues.set(key, [job])
    },
    leave: (job) => {
      const key = keyOf(job)
      total -= 1
      const left = (inFlight.get(key) ?? 1) - 1
      if (left > 0) inFlight.set(key, left)
      else inFlight.delete(key)
      if (waiting > 0) next()
    },
    waiting: () => waiting,
  }
}
