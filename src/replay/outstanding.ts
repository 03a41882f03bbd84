// How many more calls of a replay may be sent before too many wait for their receiver.

export type Outstanding = {
  /** None before the first look: until then nobody knows. */
  room(): number
  /** Given to the log, or about to be. */
  add(calls: number): void
  /** Of those added: counted in the replay's row, where a look finds them. */
  save(calls: number): void
  /** A look at the rows begins. */
  look(): void
  /** What it found. */
  see(standing: number): void
}

/** What was not saved when the last look began is outstanding beside what it found: counted twice sooner than not at all. */
export const openOutstanding = (most: number): Outstanding => {
  let known: number | null = null
  let added = 0
  let saved = 0
  let savedAtLook = 0
  let seen = 0
  return {
    room: () => (known === null ? 0 : most - known - (added - seen)),
    add: (calls) => {
      added += calls
    },
    save: (calls) => {
      saved += calls
    },
    look: () => {
      savedAtLook = saved
    },
    see: (standing) => {
      known = standing
      seen = savedAtLook
    },
  }
}
