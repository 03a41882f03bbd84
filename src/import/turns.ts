// Keeps the chunks of one import in order: one may be judged while the one before it is being appended.

type Turn = { readonly id: number; readonly place: number; readonly until: number }

export type Turns = {
  /** `before` resolves when the chunk in hand that ends where this one begins is over, however it went. */
  enter<R>(turn: Turn, work: (before: Promise<unknown>) => Promise<R>): Promise<R>
}

export const openTurns = (): Turns => {
  const inHand = new Map<string, Promise<unknown>>()
  return {
    enter: async ({ id, place, until }, work) => {
      const name = `${id} ${until}`
      const before = inHand.get(`${id} ${place}`) ?? Promise.resolve()
      const running = work(before.catch(() => undefined))
      inHand.set(name, running)
      try {
        return await running
      } finally {
        if (inHand.get(name) === running) inHand.delete(name)
      }
    },
  }
}
