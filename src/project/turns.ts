// One write transaction at a time in a process: live batches and builds take turns, first come first served.

export type Turns = <R>(work: () => Promise<R>) => Promise<R>

export const turns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work, work)
    last = mine.catch(() => undefined)
    return mine
  }
}
