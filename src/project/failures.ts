// How often a batch has failed, and whether once more is too often.

export type Failures = {
  /** Throws when it failed too often while the database answered. */
  note(reason: string): void
}

export const openFailures = (replaysMax: number): Failures => {
  let replays = 0
  return {
    note: (reason) => {
      // However long it is: what is collected into another log goes on, and a new process could do no better.
      if (reason === 'outage') return
      replays += 1
      if (replays > replaysMax) throw new RangeError('a batch was replayed too often')
    },
  }
}
