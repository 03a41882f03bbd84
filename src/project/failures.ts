// How often and for how long a batch has failed.

export type Failures = {
  /** Since the first of the tries in a row that failed because the database was away; 0 for the first. */
  awayMs(): number
  /** Throws when it failed too often while the database answered. */
  note(reason: string): void
}

export const openFailures = (replaysMax: number): Failures => {
  let replays = 0
  let awaySince: number | null = null
  let failedAt = 0
  return {
    // Not from the batch's beginning: a process that was frozen in its batch has seen no outage.
    awayMs: () => {
      failedAt = performance.now()
      return failedAt - (awaySince ?? failedAt)
    },
    note: (reason) => {
      if (reason === 'outage') {
        awaySince ??= failedAt
        return
      }
      awaySince = null
      replays += 1
      if (replays > replaysMax) throw new RangeError('a batch was replayed too often')
    },
  }
}
